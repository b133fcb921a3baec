/* Write-back of one line: writers under pins, a cleaner and a flush whose writes may fail, an evictor, refills from the device.
 * PROTOCOLS.md section 2, "Write-back". Sequentially consistent memory and lone threads.
 *
 * A word is split into pins, state, dirty and writing; what the protocol does in one read-modify-write is one d_step. The line
 * has an element for each writer, whose values only grow; a controller moves one element after another.
 *
 * WRITERS threads with STORES stores each; FAILURES writes of the device may fail. MUTANT 0: as in the protocol.
 */
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef STORES
#define STORES 2
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define DIRTY_AT_PIN (MUTANT == 1)         /* E9 */
#define DIRTY_AFTER_UNPIN (MUTANT == 2)    /* E9 */
#define CLEARED_AT_FINISH (MUTANT == 3)    /* E9 */
#define FAILURE_FORGOTTEN (MUTANT == 4)    /* E9 */
#define EVICT_IGNORES_WRITING (MUTANT == 5) /* E5 */
#define EVICT_IGNORES_DIRTY (MUTANT == 6)  /* E5 */
#define TWO_WRITES_AT_ONCE (MUTANT == 7)

#define NOTHING 255

byte pins;
bit valid, filling, dirty, writing;
byte frame[WRITERS];  /* the line's bytes in the cache; NOTHING where there is no line */
byte disk[WRITERS];   /* on the device */
byte last[WRITERS];   /* what each writer stored last */
byte safe[WRITERS];   /* of those, what had been stored when its pin was given back */
byte failures;        /* writes that may still fail */
byte writers_left = WRITERS;

/* A pin on the line, which is brought in first if it is not there. */
inline pin() {
  do
  :: d_step { valid -> pins++ } ; break
  :: d_step { !valid && !filling -> filling = 1; pins++ } ;
     k = 0;
     do
     :: k < WRITERS -> frame[k] = disk[k]; k++
     :: else -> break
     od;
     skip;
     d_step { filling = 0; valid = 1; k = 0 } ;
     break
  od
}

proctype writer(byte me) {
  byte k, n;
  do
  :: n == STORES -> break
  :: else ->
     n++;
     pin();
     assert(frame[me] == last[me]); /* no store was lost on the way out and in again */
     if
     :: DIRTY_AT_PIN -> dirty = 1
     :: else
     fi;
     skip;
     d_step { frame[me] = n; last[me] = n } ;
     if
     :: DIRTY_AT_PIN -> pins--
     :: DIRTY_AFTER_UNPIN -> pins--; dirty = 1
     :: else -> dirty = 1; pins--
     fi;
     safe[me] = n
  od;
  writers_left--
}

/* One write of the line, if it has to be written and nobody is at it. */
inline clean(skips_pinned) {
  d_step {
    claimed = 0;
    if
    :: valid && dirty && (!writing || TWO_WRITES_AT_ONCE) && (!skips_pinned || pins == 0) ->
       writing = 1; claimed = 1;
       if
       :: CLEARED_AT_FINISH
       :: else -> dirty = 0
       fi
    :: else
    fi
  }
  if
  :: claimed ->
     k = 0;
     do
     :: k < WRITERS -> sent[k] = frame[k]; k++
     :: else -> break
     od;
     k = 0;
     if
     :: failures > 0 ->
        d_step {
          failures--;
          writing = 0;
          if
          :: FAILURE_FORGOTTEN
          :: else -> dirty = 1
          fi
        }
     :: true ->
        do
        :: k < WRITERS -> assert(sent[k] != NOTHING); disk[k] = sent[k]; k++
        :: else -> break
        od;
        skip;
        d_step {
          k = 0;
          writing = 0;
          if
          :: CLEARED_AT_FINISH -> dirty = 0
          :: else
          fi
        }
     fi;
     skip;
     d_step { k = 0; do :: k < WRITERS -> sent[k] = 0; k++ :: else -> break od; k = 0; claimed = 0 }
  :: else
  fi
}

/* Cleans now and then, and never what is pinned. */
proctype cleaner() {
  byte k, sent[WRITERS];
  bit claimed;
  do
  :: dirty && !writing -> clean(1)
  :: writers_left == 0 -> break
  od
}

/* What was safe when it began is on the device when it returns. */
proctype flush() {
  byte k, sent[WRITERS], wanted[WRITERS];
  bit claimed, last_one;
  do
  :: last_one -> break
  :: else ->
     last_one = (writers_left == 0);
     d_step { k = 0; do :: k < WRITERS -> wanted[k] = safe[k]; k++ :: else -> break od; k = 0 }
     do
     :: dirty && (!writing || TWO_WRITES_AT_ONCE) -> clean(0)
     :: atomic { !dirty && !writing -> break }
     od;
     skip;
     d_step { k = 0; do :: k < WRITERS -> assert(disk[k] >= wanted[k]); k++ :: else -> break od; k = 0 }
  od;
  skip;
  d_step { k = 0; do :: k < WRITERS -> assert(disk[k] == STORES); k++ :: else -> break od }
}

proctype evictor() {
  byte k;
  do
  :: d_step {
       valid && pins == 0 && (!dirty || EVICT_IGNORES_DIRTY) && (!writing || EVICT_IGNORES_WRITING) ->
       valid = 0; k = 0;
       do :: k < WRITERS -> frame[k] = NOTHING; k++ :: else -> break od;
       k = 0
     }
  :: writers_left == 0 -> break
  od
}

init {
  byte w;
  atomic {
    failures = FAILURES;
    do :: w < WRITERS -> frame[w] = NOTHING; run writer(w); w++ :: else -> break od;
    run cleaner();
    run flush();
    run evictor()
  }
}
