/* The lives of a drive (src/pcie): queues are attached and detached while somebody resets the controller, and while the controller
 * answers, or answers its admin queue no more, or does not stop when it is told to. Sequentially consistent memory.
 *
 * What must hold: the controller writes to no ring that was given back; no doorbell is rung of a queue that is not there; nobody
 * waits for ever. Rings that the controller may still write are kept for ever (`kept`), which only a function that does not stop
 * leads to.
 *
 * QUEUES queues with ATTACHES lives each, RESETS resets. TROUBLE 0: the controller obeys; 1: its admin queue may go dead at any
 * moment; 2: and then it may not stop either. MUTANT 0: as in the code.
 */
#ifndef QUEUES
#define QUEUES 2
#endif
#ifndef ATTACHES
#define ATTACHES 2
#endif
#ifndef RESETS
#define RESETS 1
#endif
#ifndef TROUBLE
#define TROUBLE 2
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

/* The controller. */
bit working, dead, stuck;
bit there[QUEUES];     /* it has the queue */
byte fetched[QUEUES];  /* commands that it will answer into the ring */
/* The driver. */
bit turn;     /* of who asks the admin queue, or turns the controller on or off */
bit gate;     /* exclusive side */
byte ringing; /* shared side */
bit stopped = 1;
byte life = 1;
/* A queue: the host's rings, their doorbell word, and who serves it. */
bit given[QUEUES]; /* the rings belong to the queue, not to anybody else */
bit kept[QUEUES];
bit attached[QUEUES];
byte life_of[QUEUES];
bit word[QUEUES]; /* something to forward */
bit serving[QUEUES];
byte over; /* owners and resetters that have ended */

#define LOCK(l) atomic { !l -> l = 1 }
#define UNLOCK(l) l = 0

/* It turns everything off at once; or, in trouble, goes on as it likes. `took`: whether it stopped. */
inline turn_off(took) {
  atomic {
    if
    :: stuck -> took = 0
    :: else ->
      working = 0;
      dead = 0;
      i = 0;
      do
      :: i < QUEUES -> there[i] = 0; fetched[i] = 0; i++
      :: else -> break
      od;
      i = 0;
      took = 1
    fi
  }
}

/* state::stop: under the turn. */
inline stop_controller(took) {
#if MUTANT == 1
  life++;
#endif
#if MUTANT != 6
  atomic { !gate && ringing == 0 -> gate = 1 };
#endif
  turn_off(took);
  if
  :: took ->
    stopped = 1;
#if MUTANT != 1 && MUTANT != 5
    life++
#endif
  :: else
  fi;
#if MUTANT != 6
  gate = 0
#endif
}

inline bring_back(took) {
  stop_controller(took);
  if
  :: took -> atomic { working = 1; stopped = 0 }
  :: else
  fi
}

/* state::delete_queue: under the turn. An admin queue that is dead says nothing, and the deadline passes. */
inline delete_queue(q, took) {
  if
  :: stopped -> took = 1
  :: else ->
    if
    :: atomic { !dead && working -> there[q] = 0; fetched[q] = 0; took = 1 }
    :: dead || !working ->
#if MUTANT == 3
      took = 1
#else
      stop_controller(took)
#endif
    fi
  fi
}

proctype owner(byte q) {
  byte n, i;
  bit took;
  do
  :: n == ATTACHES || kept[q] -> break
  :: n < ATTACHES && !kept[q] ->
    n++;
    given[q] = 1;
    LOCK(turn);
    took = 1;
    if
    :: stopped || dead || !working -> bring_back(took)
    :: else
    fi;
    if
    :: atomic { took && !dead && working -> there[q] = 1 };
      life_of[q] = life;
      UNLOCK(turn);
      attached[q] = 1;
      word[q] = 1;
      /* It may be taken back at any moment: whoever serves it is waited for. */
      atomic { !serving[q] -> serving[q] = 1 };
      attached[q] = 0;
      if
      :: life_of[q] != life -> took = 1
      :: else ->
        LOCK(turn);
        delete_queue(q, took);
        UNLOCK(turn)
      fi;
      serving[q] = 0
    :: else -> /* refused: it was not made, or will be gone with the next stop; nothing was rung */
      UNLOCK(turn);
      took = 1
    fi;
#if MUTANT == 4
    took = 1;
#endif
    if
    :: took -> atomic { given[q] = 0; word[q] = 0 }
    :: else -> kept[q] = 1
    fi
  od;
  over++
}

proctype resetter() {
  byte n, i;
  bit took;
  do
  :: n == RESETS -> break
  :: n < RESETS ->
    n++;
    LOCK(turn);
    bring_back(took);
    UNLOCK(turn)
  od;
  over++
}

/* pcie_queue::forward, by whoever polls. */
proctype forwarder(byte q) {
end:
  do
  :: atomic { attached[q] && word[q] && !serving[q] -> serving[q] = 1 };
#if MUTANT == 2
    if
    :: life_of[q] == life ->
      atomic { !gate -> ringing++ };
      assert(working && there[q]);
      fetched[q] = 1;
      word[q] = 0;
      ringing--
    :: else -> word[q] = 0
    fi;
#else
    if
#if MUTANT == 6
    :: ringing++ ->
#else
    :: atomic { !gate -> ringing++ } ->
#endif
      if
      :: life_of[q] == life ->
        assert(working && there[q]);
        fetched[q] = 1;
        word[q] = 0
      :: else -> word[q] = 0
      fi;
      ringing--
#if MUTANT != 6
    :: gate /* tried, not waited for */
#endif
    fi;
#endif
    serving[q] = 0
  od
}

/* It answers what it has fetched, whenever it likes. */
proctype controller(byte q) {
end:
  do
  :: atomic { working && there[q] && fetched[q] != 0 -> assert(given[q]); fetched[q]-- }
  od
}

proctype mischief() {
#if TROUBLE >= 1
  if
  :: atomic { working -> dead = 1 }
  :: skip
  fi;
#endif
#if TROUBLE >= 2
  if
  :: stuck = 1
  :: skip
  fi;
#endif
  skip
}

init {
  byte q;
  atomic {
    do
    :: q < QUEUES -> run owner(q); run forwarder(q); run controller(q); q++
    :: else -> break
    od;
    run resetter();
    run mischief()
  };
  over == QUEUES + 1
}
