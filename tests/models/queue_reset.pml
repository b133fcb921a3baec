/* A reset of the queue pair beside submitters and whoever waits (PROTOCOLS.md section 3, "Reset"; the numbers are its steps).
 * Submission and harvest as in queue_pair.pml, where they are looked at in smaller steps. Sequentially consistent memory, lone
 * threads.
 *
 * Each command ends once: finished, answered by the reset, or withdrawn by its submitter. Who waits is blocked while there is
 * nothing to do, so that a hang is a state in which all are blocked.
 *
 * D, C: entries of SQ and CQ. THREADS submitters with COMMANDS commands each. MUTANT 0: as in the code.
 */
#ifndef D
#define D 2
#endif
#ifndef C
#define C 2
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef COMMANDS
#define COMMANDS 2
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define TOTAL (THREADS * COMMANDS)
#if D < C
#define N (D - 1)
#else
#define N (C - 1)
#endif

#define FREE 0
#define PUBLISHED 1
#define WORD(t, phase) (4 * (t) + (phase))
#define PHASE_OF_LAP(position) (1 - ((position) / C) % 2)
#define DONE(u) (word[(u) % D] >= WORD((u) + D, FREE))
#define READY_TO_RING(u) (word[(u) % D] == WORD(u, PUBLISHED) && ((u) < N || DONE((u) - N)))

byte ticket, settled, rung, cq_head;
bit closed;  /* a bit of the ticket's word: changes only with it */
bit closing; /* `stopped` */
bit ring_lock, harvest_lock;
byte word[D];
byte context[D]; /* the command that is in the slot */
byte sq_doorbell;
byte cq_slot[C];
bit cq_phase[C];
/* The controller's own. */
bit attached = 1;
byte head, tail;
bit phase = 1;
bit in_flight[D];
/* Of the checker. */
bit ended[TOTAL];
byte ended_in_all;

inline over(c) {
  assert(!ended[c]);
  ended[c] = 1;
  ended_in_all++
}

#define RINGABLE (!ring_lock && READY_TO_RING(rung))
#define HARVESTABLE (!harvest_lock && cq_phase[cq_head % C] == PHASE_OF_LAP(cq_head))

inline try_ring() {
  d_step { RINGABLE; ring_lock = 1; r = rung }
  do
  :: READY_TO_RING(r) -> r++
  :: else -> break
  od;
  rung = r;
  d_step { sq_doorbell = r % D; ring_lock = 0; r = 0 }
}

inline try_harvest() {
  d_step { HARVESTABLE; harvest_lock = 1; s = cq_slot[cq_head % C]; w = word[s] }
  assert(w % 4 == PUBLISHED && w / 4 < rung); /* else a stray: the controller would be given up */
  d_step { assert(word[s] == w); over(context[s]); word[s] = WORD(w / 4 + D, FREE) }
  d_step { cq_head++; harvest_lock = 0; s = 0; w = 0 }
}

proctype submitter(byte me) {
  byte t, k, r, s, w;
  bit refused;
  do
  :: k == COMMANDS -> break
  :: else ->
     d_step { t = ticket; refused = closed; ticket++ } /* a fetch_add */
     if
     :: refused -> over(me * COMMANDS + k)
     :: else ->
        do
        :: d_step { word[t % D] == WORD(t, FREE) -> context[t % D] = me * COMMANDS + k }
           word[t % D] = WORD(t, PUBLISHED);
           do /* 8 */
           :: rung > t -> break
           :: closing -> break
           :: try_ring()
           :: try_harvest()
           od;
           break
        :: d_step { closing && word[t % D] != WORD(t, FREE) -> over(me * COMMANDS + k) } break
        :: try_ring()
        :: try_harvest()
        od;
        settled++
     fi;
     d_step { k++; t = 0; refused = 0 }
  od
}

/* Somebody who waits for all of it. */
proctype waiter() {
  byte s, w;
  do
  :: ended_in_all == TOTAL -> break
  :: try_harvest()
  od
}

proctype reset() {
  byte given, first, at;
#if MUTANT == 1 /* Q12: without CLOSED */
  given = ticket;
#else
  d_step { given = ticket; closed = 1 } /* 1 */
#endif
  closing = 1;
#if MUTANT != 3 /* Q12: nobody waits for those who hold tickets */
  settled == given; /* 2: tickets begin at 0, so none was skipped */
#endif
  d_step { !ring_lock -> ring_lock = 1 }
  d_step { !harvest_lock -> harvest_lock = 1 }
  /* 3: what it fetched is forgotten */
  d_step { attached = 0; head = 0; tail = 0; phase = 1; at = 0; do :: at < D -> in_flight[at] = 0; at++ :: else -> break od; at = 0 }
  do /* 4 */
  :: at == D -> break
  :: else ->
     if
     :: word[at] % 4 == PUBLISHED -> d_step { over(context[at]); word[at] = WORD(word[at] / 4 + D, FREE) }
     :: else
     fi;
     at++
  od;
  first = ((given + D - 1) / D) * D; /* 6 */
#if MUTANT == 2 /* Q12: the ticket before the words */
  d_step { ticket = first; closed = 0 }
#endif
  at = 0;
  do
  :: at == D -> break
  :: else -> word[at] = WORD(first + at, FREE); at++
  od;
  at = 0;
#if MUTANT != 4 /* Q5: completions of the old life */
  d_step { do :: at < C -> cq_phase[at] = 0; at++ :: else -> break od; at = 0 }
#endif
  d_step { sq_doorbell = 0; rung = first; cq_head = 0; attached = 1 }
  closing = 0;
  harvest_lock = 0;
  ring_lock = 0;
#if MUTANT != 2
  d_step { ticket = first; closed = 0 }
#endif
}

inline complete(slot) {
  d_step {
    attached && in_flight[slot] -> in_flight[slot] = 0;
    cq_slot[tail] = slot;
    cq_phase[tail] = phase;
    tail = (tail + 1) % C;
    if
    :: tail == 0 -> phase = 1 - phase
    :: else
    fi
  }
}

proctype controller() {
end:
  do
  :: d_step {
       attached && head != sq_doorbell ->
       assert(!in_flight[head] && word[head] % 4 == PUBLISHED);
       in_flight[head] = 1;
       head = (head + 1) % D
     }
  :: complete(0)
  :: complete(1)
#if D > 2
  :: complete(2)
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
    run reset();
    do
    :: i < THREADS -> run submitter(i); i++
    :: else -> break
    od
  }
}
