/* The recovery of queue pairs by stages (queue_pair::recover) over a drive (src/pcie) that answers late, refuses, answers its admin
 * queue no more, does not stop, or vanishes and comes back. Hosts each have a queue pair with one command at a time, and beside who
 * submits somebody who recovers; hosts share the drive's queue numbers, and somebody else resets the drive. Sequentially consistent
 * memory. What a life of the drive is to those who ring doorbells, drive_lives.pml looks at; how a reset of a queue goes beside its
 * submitters, queue_reset.pml.
 *
 * What must hold: each command has exactly one result, and its own; the controller writes to no memory that was given back; no
 * queue of a former life is deleted in the new one; an Abort ends no command that somebody waits for; recovery ends. Memory is kept
 * for ever only where neither the controller nor its function stops.
 *
 * HOSTS hosts, one with COMMANDS commands and the others with OTHERS, and NUMBERS queue numbers; RESETS resets by somebody else. TROUBLE 0: the controller is
 * late and aborts what it likes; 1: its admin queue may go dead, and it may vanish; 2: it may not stop when told to; 3: nor by a
 * reset of its function. MUTANT 0: as in the code.
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef NUMBERS
#define NUMBERS 1
#endif
#ifndef COMMANDS
#define COMMANDS 2
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
#ifndef RESETS
#define RESETS 1
#endif
#ifndef TROUBLE
#define TROUBLE 3
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define TRIES 2 /* of a host to attach */
#define COMMANDS_OF(h) (h == 0 -> COMMANDS : OTHERS)
#define NUMBER(h) ((h) % NUMBERS)
#define SLOT(h, generation) (2 * (h) + (generation))

/* The controller. */
bit working, dead, stuck, deaf, gone;
byte serves[NUMBERS]; /* host + 1 whose rings it has for that number */
byte holds[2 * HOSTS]; /* per host and generation of the identifier: the command + 1 that it will complete */
bit abort_waits;       /* an Abort that it has not answered, and may carry out yet */
byte abort_number, abort_generation;

/* The driver of the drive. What it does under its turn is one step here. */
bit stopped = 1;
bit admin_failed;
byte life = 1;
byte in_use[NUMBERS]; /* host + 1 in the table of queues */

/* A host's queue pair. */
bit closed[HOSTS];
bit attached[HOSTS];
bit given_up[HOSTS];
byte made_in[HOSTS];
byte live[HOSTS]; /* the command + 1 that is in the slot */
bit generation[HOSTS];
bit held[HOSTS]; /* quarantine of the other generation */
bit asked[HOSTS];
byte posted[2 * HOSTS]; /* completions that nobody has harvested */
bit kept[HOSTS];
/* Of the checker: what the controller may write, who waits for a result, and what has ended. */
bit rings[HOSTS];
bit buffer[2 * HOSTS];
byte waits[HOSTS]; /* the command + 1 */
bit users_over[HOSTS];
byte over;

#define NEEDS_RESET (stopped || admin_failed || !working)

inline tell(h, command) {
  assert(waits[h] == command);
  waits[h] = 0
}

/* It forgets all; whether it does so by itself is `stuck`. */
inline forget() {
  working = 0;
  dead = 0;
  abort_waits = 0;
  i = 0;
  do
  :: i < NUMBERS -> serves[i] = 0; i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < 2 * HOSTS -> holds[i] = 0; i++
  :: else -> break
  od;
  i = 0
}

/* state::stop: CC.EN, else the function's own reset. One that is gone writes nothing. */
inline stop_controller(took) {
  if
  :: gone || !stuck -> forget(); took = 1
  :: !gone && stuck && !deaf -> /* function-level reset */
#if MUTANT != 5
    forget();
#endif
    took = 1
  :: !gone && stuck && deaf -> took = 0
  fi;
  if
  :: took -> stopped = 1; life++
  :: else
  fi
}

/* state::bring_back. */
inline bring_back(took) {
  stop_controller(took);
  if
  :: took && !gone -> working = 1; stopped = 0; admin_failed = 0
  :: else -> took = 0
  fi
}

/* pcie_controller::attach. */
inline attach(h, took) {
  atomic {
    took = in_use[NUMBER(h)] == 0;
    if
    :: took && NEEDS_RESET -> bring_back(took)
    :: else
    fi;
    if
    :: took && !dead && serves[NUMBER(h)] == 0 ->
      serves[NUMBER(h)] = h + 1;
      in_use[NUMBER(h)] = h + 1;
      made_in[h] = life;
      attached[h] = 1
    :: took && !dead && serves[NUMBER(h)] != 0 -> took = 0 /* its former owner is about to delete that one */
    :: took && dead -> /* no answer; it was done or not */
      admin_failed = 1;
      if
      :: serves[NUMBER(h)] == 0 -> serves[NUMBER(h)] = h + 1
      :: true
      fi;
      stop_controller(took);
      took = 0
    :: !took
    fi
  }
}

/* pcie_controller::detach: out of the table first, then state::delete_queue. */
inline detach(h, took) {
  atomic { attached[h] = 0; in_use[NUMBER(h)] = 0 }
  atomic {
    if
#if MUTANT == 1
    :: stopped -> took = 1
    :: !stopped ->
#else
    :: stopped || made_in[h] != life -> took = 1
    :: !(stopped || made_in[h] != life) ->
#endif
      if
      :: working && !dead && !admin_failed ->
        assert(serves[NUMBER(h)] == h + 1);
        serves[NUMBER(h)] = 0;
        holds[SLOT(h, 0)] = 0;
        holds[SLOT(h, 1)] = 0;
        took = 1
      :: !working || dead || admin_failed ->
        admin_failed = 1;
#if MUTANT == 4
        took = 1
#else
        stop_controller(took)
#endif
      fi
    fi
  }
}

/* queue_pair::abort_late. */
inline abort_late(h, ended) {
  ended = 0;
  if
  :: atomic { held[h] && !given_up[h] && !closed[h] -> asked[h] = 1 };
    atomic {
      if
      :: NEEDS_RESET
      :: !NEEDS_RESET && !dead && serves[NUMBER(h)] == h + 1 -> /* it aborts the command, or says that it did not */
        if
        :: held[h] && holds[SLOT(h, 1 - generation[h])] != 0 -> complete(SLOT(h, 1 - generation[h]), h)
        :: true
        fi
      :: !NEEDS_RESET && dead ->
        admin_failed = 1;
        abort_waits = 1;
        abort_number = NUMBER(h);
        abort_generation = 1 - generation[h]
      :: else /* of a former life: there is nothing to abort */
      fi
    }
    atomic {
      if
#if MUTANT != 2
      :: admin_failed /* an Abort without an answer may be carried out until a reset: its identifier stays dead */
      :: !admin_failed ->
#else
      :: true ->
#endif
        if
        :: posted[SLOT(h, 1 - generation[h])] != 0 && held[h] -> harvest(h, 1 - generation[h])
        :: else
        fi;
        ended = !held[h];
        asked[h] = 0
      fi
    }
  :: else
  fi
}

/* queue_pair::reset. Without its controller's consent nothing is given back. */
inline reset_queue(h, took) {
  closed[h] = 1;
  took = 1;
#if MUTANT == 6
  answer_all(h);
#endif
  if
  :: attached[h] -> detach(h, took)
  :: else
  fi;
  if
  :: !took -> atomic { kept[h] = 1; give_up(h) }
  :: took ->
    atomic { answer_all(h); rings[h] = 0 };
    tried = 0;
    do
    :: tried == TRIES -> break
    :: tried < TRIES ->
      tried++;
      attach(h, took);
      if
      :: took -> atomic { rings[h] = 1; closed[h] = 0 }; break
      :: else
      fi
    od
  fi
}

inline answer_all(h) {
  if
  :: live[h] != 0 && !given_up[h] -> tell(h, live[h])
  :: else
  fi;
  live[h] = 0;
  held[h] = 0;
  asked[h] = 0;
  given_up[h] = 0;
  generation[h] = 0;
  buffer[SLOT(h, 0)] = 0;
  buffer[SLOT(h, 1)] = 0;
  posted[SLOT(h, 0)] = 0;
  posted[SLOT(h, 1)] = 0
}

/* queue_pair_view::give_up and fail_all: whoever waits is told, and what the controller may write is kept. */
inline give_up(h) {
  if
  :: live[h] != 0 && !given_up[h] -> tell(h, live[h])
  :: else
  fi;
  given_up[h] = 1
}

/* One completion: that of the live command, or of the one in quarantine. */
inline harvest(h, g) {
  if
  :: live[h] != 0 && g == generation[h] ->
    tell(h, posted[SLOT(h, g)]);
    live[h] = 0
  :: else ->
    assert(held[h]);
    held[h] = 0
  fi;
  buffer[SLOT(h, g)] = 0;
  posted[SLOT(h, g)] = 0
}

/* The controller's own: data, then the completion. */
inline complete(slot, h) {
  assert(buffer[slot] && rings[h]);
  posted[slot] = holds[slot];
  holds[slot] = 0
}

proctype user(byte h) {
  byte k;
  do
  :: k == COMMANDS_OF(h) -> break
  :: k < COMMANDS_OF(h) ->
    k++;
    if
    :: closed[h] || given_up[h] /* withdrawn */
    :: atomic { !closed[h] && !given_up[h] && live[h] == 0 && holds[SLOT(h, generation[h])] == 0 ->
         waits[h] = k;
         live[h] = k;
         buffer[SLOT(h, generation[h])] = 1;
         if /* rung: it comes to whoever has the queue in this life */
         :: working && made_in[h] == life && serves[NUMBER(h)] == h + 1 -> holds[SLOT(h, generation[h])] = k
         :: else
         fi
       };
       do
       :: waits[h] == 0 -> break
       :: atomic { !given_up[h] && !closed[h] && posted[SLOT(h, 0)] != 0 -> harvest(h, 0) }
       :: atomic { !given_up[h] && !closed[h] && posted[SLOT(h, 1)] != 0 -> harvest(h, 1) }
       :: atomic { /* its deadline: queue_pair_view::abandon, which has looked for a completion */
            waits[h] != 0 && !closed[h] && !given_up[h] && posted[SLOT(h, generation[h])] == 0 ->
            if
#if MUTANT == 3
            :: held[h] -> give_up(h)
#else
            :: held[h] || asked[h] -> give_up(h)
#endif
            :: else ->
              tell(h, live[h]);
              live[h] = 0;
              held[h] = 1;
#if MUTANT != 7
              generation[h] = 1 - generation[h]
#endif
            fi
          }
       od
    fi
  od;
  users_over[h] = 1
}

proctype keeper(byte h) {
  byte i, tried;
  bit took, ended;
  closed[h] = 1;
  do
  :: tried == TRIES -> break
  :: tried < TRIES ->
    tried++;
    attach(h, took);
    if
    :: took -> atomic { rings[h] = 1; closed[h] = 0 }; break
    :: else
    fi
  od;
  run user(h);
  do
  :: kept[h] || (users_over[h] && !held[h] && !given_up[h]) -> break
  :: !attached[h] -> users_over[h] -> break
  :: !kept[h] && attached[h] && (held[h] || given_up[h]) -> /* queue_pair::recover */
    abort_late(h, ended);
    if
    :: !ended || held[h] || given_up[h] -> reset_queue(h, took)
    :: else
    fi
  od;
  users_over[h];
  took = 1;
  if
  :: attached[h] && !kept[h] -> detach(h, took)
  :: else
  fi;
  assert(waits[h] == 0);
  atomic {
    if
    :: kept[h] || !took
    :: else -> answer_all(h); rings[h] = 0
    fi
  }
  atomic { took = 0; ended = 0; tried = 0; over++ }
}

/* pcie_controller::reset, by somebody else. */
proctype resetter() {
  byte n, i;
  bit took;
  do
  :: n == RESETS -> break
  :: n < RESETS ->
    n++;
    atomic { bring_back(took); took = 0 }
  od;
  over++
}

proctype controller() {
end:
  do
  :: atomic { working && holds[0] != 0 -> complete(0, 0) }
  :: atomic { working && holds[1] != 0 -> complete(1, 0) }
#if HOSTS > 1
  :: atomic { working && holds[2] != 0 -> complete(2, 1) }
  :: atomic { working && holds[3] != 0 -> complete(3, 1) }
#endif
  :: atomic { /* late */
       working && abort_waits ->
       abort_waits = 0;
       if
       :: serves[abort_number] == 0
       :: serves[abort_number] != 0 && holds[SLOT(serves[abort_number] - 1, abort_generation)] != 0 ->
         assert(live[serves[abort_number] - 1] != holds[SLOT(serves[abort_number] - 1, abort_generation)]);
         complete(SLOT(serves[abort_number] - 1, abort_generation), serves[abort_number] - 1)
       :: else
       fi
     }
  od
}

/* Once, at any moment. */
proctype mischief() {
  byte i;
#if TROUBLE >= 1
  if
  :: atomic { working -> dead = 1 }
  :: atomic { working -> forget(); gone = 1 };
    if
    :: gone = 0
    :: skip
    fi
  :: skip
  fi;
#endif
  skip
}

init {
  byte h;
  atomic {
#if TROUBLE >= 2
    if
    :: stuck = 1
    :: skip
    fi;
#endif
#if TROUBLE >= 3
    if
    :: stuck -> deaf = 1
    :: skip
    fi;
#endif
    do
    :: h < HOSTS -> run keeper(h); h++
    :: else -> break
    od;
    run controller();
    run resetter();
    run mischief()
  };
  over == HOSTS + 1
}
