/* The entry of the `direct` directory: claim, join, undo, publish, evict, pin and unpin, with passers-by at any moment
 * (cache/line_cache_view.hpp, coalesce/line_request.hpp and line_request_wait.hpp, cache/line_sink.hpp). Sequentially consistent
 * memory and lone threads; orders and versions are validated_read_relacy.cpp's.
 *
 * A word is split into pins, state and place; what the code does in one read-modify-write is one d_step. Left out are
 * referenced, dirty and writing, and the version: under pins and compare-and-swap an entry that is as it was may be claimed or
 * evicted as if it had never changed.
 *
 * LINES, FRAMES; USERS threads with ACCESSES reads or prefetches of any line each; one more thread that holds a pin on line 0
 * while it reads line 1, as a program with a pinned_line does. MUTANT 0: as in the code.
 */
#ifndef LINES
#define LINES 2
#endif
#ifndef FRAMES
#define FRAMES 1
#endif
#ifndef USERS
#define USERS 2
#endif
#ifndef ACCESSES
#define ACCESSES 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define PUBLISH_BY_STORE (MUTANT == 1)   /* E4 */
#define EVICT_IGNORES_PINS (MUTANT == 2) /* E5 */
#define PIN_WITHOUT_A_LOOK (MUTANT == 3) /* E6 */
#define CLAIM_WITHOUT_PIN (MUTANT == 4)  /* E10 */
#define WAIT_WITH_A_CLAIM (MUTANT == 5)  /* E11 */

#define EMPTY 0
#define FILLING 1
#define VALID 2
#define FAILED 3
#define NOTHING 255

#define READ 0
#define HOLD 1
#define PREFETCH 2

byte pins[LINES], state[LINES], place[LINES];
byte owner[FRAMES];   /* frame_record.line */
byte content[FRAMES]; /* the line whose bytes are there; NOTHING while they are being written */
byte fresh;           /* frames never used so far */
bit command[LINES];   /* a fill in flight, into place[line] */
byte running;         /* threads that are not over */

#define AT_REST(l) (pins[l] == 0 && (state[l] == VALID || state[l] == FAILED))
#if LINES == 2
#define SOME_AT_REST (AT_REST(0) || AT_REST(1))
#else
#define SOME_AT_REST (AT_REST(0) || AT_REST(1) || AT_REST(2))
#endif

inline unpin(l) {
  d_step { assert(pins[l] > 0); pins[l]-- }
}

inline check_bytes(l) {
  assert(state[l] == VALID && content[place[l]] == l)
}

/* take_frame, evict: victim = a frame for this thread alone, or NOTHING. */
inline take_frame() {
  d_step {
    victim = NOTHING;
    if
    :: fresh < FRAMES -> victim = fresh; fresh++
    :: else
    fi
  }
  f = 0;
  do
  :: victim == NOTHING && f < FRAMES ->
     d_step { v = owner[f]; vp = 0; vs = EMPTY; vl = 0 }
     if
     :: v != NOTHING ->
        d_step { vp = pins[v]; vs = state[v]; vl = place[v] }
        if
        :: (vs == VALID || vs == FAILED) && vl == f && (vp == 0 || EVICT_IGNORES_PINS) ->
           d_step { /* the compare-and-swap; the evicted word has no pins */
             if
             :: pins[v] == vp && state[v] == vs && place[v] == vl ->
                pins[v] = 0; state[v] = EMPTY; place[v] = 0; victim = f
             :: else
             fi
           }
        :: else
        fi
     :: else
     fi;
     f++
  :: else -> break
  od;
  skip;
  d_step { f = 0; v = 0; vp = 0; vs = 0; vl = 0 }
}

proctype user(bit holder) {
  byte k, l, mode, fills;
  byte ep, es, el;           /* the entry as it was loaded */
  byte victim, f, v, vp, vs, vl;
  bit held;

next:
  skip;
  d_step { ep = 0; es = 0; el = 0; victim = 0; fills = 0; l = 0; mode = READ }
  if
  :: holder && k == 0 -> mode = HOLD
  :: holder && k == 1 -> l = 1
  :: holder && k == 2 -> goto over
  :: !holder && k == ACCESSES -> goto over
  :: !holder && k < ACCESSES ->
     if
     :: l = 0
     :: l = 1
#if LINES > 2
     :: l = 2
#endif
     fi;
     if
     :: mode = READ
     :: mode = PREFETCH
     fi
  fi;
  k++;

look:
  skip;
  d_step { ep = pins[l]; es = state[l]; el = place[l] }
  if
  :: mode == PREFETCH && es != EMPTY -> goto next
  :: mode != PREFETCH && es == VALID -> goto pin_valid
  :: mode != PREFETCH && es == FILLING -> goto join
  :: else -> goto claim
  fi;

pin_valid:
  skip;
  d_step { es = state[l]; vl = place[l]; pins[l]++ }
  if
  :: (es == VALID && vl == el) || PIN_WITHOUT_A_LOOK -> vl = 0; goto pinned
  :: else -> vl = 0; unpin(l); goto look
  fi;

join:
  skip;
  d_step { es = state[l]; pins[l]++ }
  if
  :: es == VALID -> goto pinned
  :: es == FILLING -> goto wait
  :: else -> unpin(l); goto look
  fi;

claim:
  if
  :: ep != 0 -> /* others must leave first */
     if
     :: mode == PREFETCH -> goto next
     :: mode != PREFETCH -> (pins[l] == 0 || state[l] != es); goto look
     fi
  :: else
  fi;
  d_step {
    if
    :: pins[l] == ep && state[l] == es && place[l] == el ->
       state[l] = FILLING;
       pins[l] = (mode == PREFETCH || CLAIM_WITHOUT_PIN -> 0 : 1);
       victim = (es == FAILED -> el : NOTHING);
       ep = 1
    :: else -> ep = 0
    fi
  }
  if
  :: !ep -> goto look
  :: ep && victim != NOTHING -> goto submit /* a failed line keeps its frame */
  :: else
  fi;
again:
  skip;
  take_frame();
  if
  :: victim != NOTHING ->
     owner[victim] = l;
     d_step { assert(place[l] == 0); place[l] = place[l] + victim }
     goto submit
  :: victim == NOTHING && WAIT_WITH_A_CLAIM -> SOME_AT_REST; goto again
  :: victim == NOTHING && !WAIT_WITH_A_CLAIM ->
     d_step { /* undo */
       if
       :: mode != PREFETCH && !CLAIM_WITHOUT_PIN -> assert(pins[l] > 0); pins[l]--
       :: else
       fi;
       assert(state[l] == FILLING);
       state[l] = EMPTY
     }
     if
     :: goto next /* no_frame at the deadline, or a prefetch */
     :: mode != PREFETCH && SOME_AT_REST -> goto look
     fi
  fi;
submit:
  skip;
  d_step { command[l] = 1; fills++; victim = 0; ep = 0; es = 0; el = 0 }
  /* A fill serves who asked for it: no access submits twice. */
  assert(fills == 1);
  if
  :: mode == PREFETCH -> goto next
  :: mode != PREFETCH
  fi;

wait:
  (state[l] != FILLING);
  es = state[l];
  if
  :: CLAIM_WITHOUT_PIN && fills == 1 -> goto look
  :: else
  fi;
  if
  :: es == VALID -> goto pinned
  :: es == FAILED -> unpin(l); goto next
  :: es == EMPTY -> unpin(l); goto look
  :: es == FILLING -> goto wait
  fi;

pinned:
  check_bytes(l);
  if
  :: mode == HOLD -> held = 1
  :: else -> check_bytes(l); unpin(l)
  fi;
  goto next;

over:
  if
  :: held -> check_bytes(0); unpin(0); held = 0
  :: else
  fi;
  running--
}

inline fill(l) {
  content[place[l]] = NOTHING;
  content[place[l]] = l;
  command[l] = 0;
  assert(state[l] == FILLING);
#if PUBLISH_BY_STORE
  seen = pins[l];
  d_step { pins[l] = seen; state[l] = VALID; seen = 0 }
#else
  if
  :: state[l] = state[l] + 1
  :: state[l] = state[l] + 2 /* fails */
  fi
#endif
}

proctype controller() {
  byte seen;
end:
  do
  :: command[0] -> fill(0)
  :: command[1] -> fill(1)
#if LINES > 2
  :: command[2] -> fill(2)
#endif
  od
}

init {
  byte i, j;
  d_step {
    do
    :: i < FRAMES -> owner[i] = NOTHING; content[i] = NOTHING; i++
    :: else -> break
    od;
    i = 0;
    running = USERS + 1
  }
  atomic {
    run controller();
    run user(1);
    do
    :: i < USERS -> run user(0); i++
    :: else -> break
    od
  }
  /* All threads over and all fills done: no pin is left, and no two lines name one frame. */
  d_step {
    (running == 0 && state[0] != FILLING && state[1] != FILLING && state[LINES - 1] != FILLING);
    i = 0;
    do
    :: i < LINES ->
       assert(pins[i] == 0);
       j = 0;
       do
       :: j < i -> assert(state[i] == EMPTY || state[j] == EMPTY || place[i] != place[j]); j++
       :: else -> break
       od;
       i++
    :: else -> break
    od
  }
}
