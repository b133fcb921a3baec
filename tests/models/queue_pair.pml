/* The queue pair: tickets, slots, the full-ring guard, both locks, completions in any order (PROTOCOLS.md section 3, whose line
 * numbers stand here). Sequentially consistent memory and lone threads; orders are queue_publish_relacy.cpp's.
 *
 * A thread that waits does whatever `progress` would find to do and is blocked while there is nothing: a state in which all are
 * blocked is a hang. Submitters leave as soon as their commands are rung, so that nobody is left who would ring for another.
 *
 * D, C: entries of SQ and CQ. THREADS submitters with COMMANDS commands each. MUTANT 0: as in the code.
 */
#ifndef D
#define D 3
#endif
#ifndef C
#define C 3
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef COMMANDS
#define COMMANDS 3
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define TOTAL (THREADS * COMMANDS)
#if D < C
#define SMALLER D
#else
#define SMALLER C
#endif

#if MUTANT == 1   /* Q1: the tail meets the head */
#define N D
#elif MUTANT == 2 /* Q1: the completion queue is forgotten */
#define N (D - 1)
#else
#define N (SMALLER - 1)
#endif

#define FREE 0
#define PUBLISHED 1
#define FINISHING 3
#define WORD(t, phase) (4 * (t) + (phase))
#define PHASE_OF_LAP(position) (1 - ((position) / C) % 2)
#define READY_TO_RING(u) (word[(u) % D] == WORD(u, PUBLISHED) && ((u) < N || word[((u) - N) % D] >= WORD((u) - N + D, FREE)))

/* 9-10, 18-19: a look and the lock in one step, enabled only where there is something to do. */
#define RINGABLE (!ring_lock && READY_TO_RING(rung))
#define LOCK_RING d_step { RINGABLE; ring_lock = 1; r = rung; start = r }
#define LOCK_HARVEST d_step { !harvest_lock && cq_phase[cq_head % C] == PHASE_OF_LAP(cq_head); harvest_lock = 1; h = cq_head }

byte ticket, rung, cq_head, finished_in_all;
bit ring_lock, harvest_lock;
byte word[D];
byte context[D], sq[D];        /* the ticket that wrote them */
byte sq_doorbell; /* mod D */
byte cq_slot[C];
bit cq_phase[C];
bit finished[TOTAL];
/* Of the checker: what is posted and not yet read. */
byte unread;

inline ring(r) {
#if MUTANT == 3 /* Q2: 15 and 16 swapped */
  sq_doorbell = r % D;
  rung = r;
#else
  rung = r;            /* 15 */
  sq_doorbell = r % D; /* 16 */
#endif
}

/* 11-17 */
inline try_ring() {
  do
  :: READY_TO_RING(r) -> r++ /* 12-13 */
  :: else -> break
  od;
#if MUTANT == 4 /* Q2: the doorbell after the lock is given back */
  if
  :: r != start -> rung = r; ring_lock = 0; sq_doorbell = r % D
  :: else -> ring_lock = 0
  fi;
#else
  if
  :: r != start -> ring(r)
  :: else
  fi;
  ring_lock = 0; /* 17 */
#endif
  r = 0; start = 0
}

/* 20-33 */
inline try_harvest() {
  do
  :: cq_phase[h % C] == PHASE_OF_LAP(h) ->
     d_step { s = cq_slot[h % C]; unread--; w = word[s] } /* 23-24 */
     assert(w % 4 == PUBLISHED);                /* 25: else a stray */
     assert(w / 4 < rung);                      /* 26 */
     d_step { assert(word[s] == w); word[s] = w + 2 } /* 27 */
     assert(context[s] == w / 4 && !finished[w / 4]);
     d_step { finished[w / 4] = 1; finished_in_all++ }
     word[s] = WORD(w / 4 + D, FREE); /* 29 */
     h++;
     cq_head = h /* 32 */
  :: else -> break
  od;
  harvest_lock = 0;
  d_step { h = 0; s = 0; w = 0 }
}

proctype submitter() {
  byte t, k, r, start, h, s, w;
  do
  :: k == COMMANDS -> break
  :: else ->
     d_step { t = ticket; ticket++ } /* 1 */
     do
     :: word[t % D] == WORD(t, FREE) -> break /* 4 */
     :: LOCK_RING -> try_ring()
     :: LOCK_HARVEST -> try_harvest()
     od;
     context[t % D] = t; /* 5 */
     sq[t % D] = t;
     word[t % D] = WORD(t, PUBLISHED); /* 6 */
#if MUTANT == 5 /* Q4: line 8 dropped: looks once, as line 7 does, and leaves */
     if
     :: LOCK_RING -> try_ring()
     :: !RINGABLE
     fi;
#else
     do /* 8 */
     :: rung > t -> break
     :: LOCK_RING -> try_ring()
     :: LOCK_HARVEST -> try_harvest()
     od;
#endif
     k++
  od
}

/* Somebody who waits for a fill that went to this queue pair: harvests until all is over. */
proctype waiter() {
  byte h, s, w;
  do
  :: finished_in_all == TOTAL && !harvest_lock -> break
  :: LOCK_HARVEST -> try_harvest()
  od;
  assert(rung == TOTAL && unread == 0)
}

inline complete(slot) {
  d_step {
    in_flight[slot] = 0;
    cq_slot[tail] = slot;
    cq_phase[tail] = 1 - cq_phase[tail];
    tail = (tail + 1) % C;
    unread++;
    assert(unread < C)
  }
}

/* Fetches in order, completes in any order, and does not look for room among the completions: Q6 says that none is overwritten
 * before it was read. (A controller that looks may find its queue full for a moment, for 29 frees the slot before 32 rings.)
 */
proctype controller() {
  byte head, tail;
  bit in_flight[D];
end:
  do
  :: head != sq_doorbell ->
     d_step {
       assert(!in_flight[head]); /* else its identifier is in flight twice */
       assert(word[head] % 4 == PUBLISHED && word[head] / 4 == sq[head]);
       in_flight[head] = 1;
       head = (head + 1) % D
     }
  :: in_flight[0] -> complete(0)
#if D > 1
  :: in_flight[1] -> complete(1)
#endif
#if D > 2
  :: in_flight[2] -> complete(2)
#endif
#if D > 3
  :: in_flight[3] -> complete(3)
#endif
  od
}

init {
  byte i;
  d_step {
    do
    :: i < D -> word[i] = WORD(i, FREE); i++
    :: else -> break
    od;
    i = 0
  }
  atomic {
    run controller();
    run waiter();
    do
    :: i < THREADS -> run submitter(); i++
    :: else -> break
    od
  }
}
