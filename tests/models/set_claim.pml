/* A claim in a set of the `set_associative` directory: scan, claim of a victim way, commit at the header, undo, join, publish,
 * unpin (cache/set_claim.hpp, cache/line_cache_view.hpp). Sequentially consistent memory and lone threads.
 *
 * A word is split into line, state and pins; what the code does in one read-modify-write is one d_step. The ways of a set are
 * looked at one after the other. Left out are the version (a compare-and-swap here may succeed where the code's fails), the
 * hand and the referenced bit (any way at rest may be the victim), dirty and writing.
 *
 * Two ways, which hold other lines at first; THREADS with ACCESSES reads of line 0 or 1 each. MUTANT 0: as in the code.
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef ACCESSES
#define ACCESSES 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define NO_COMMIT (MUTANT == 1)           /* E7 */
#define HEADER_AFTER_SCAN (MUTANT == 2)   /* E7 */
#define JOIN_WITHOUT_A_LOOK (MUTANT == 3) /* E6 */
#define CLAIM_IGNORES_PINS (MUTANT == 4)  /* E5 */

#define WAYS 2
#define EMPTY 0
#define FILLING 1
#define VALID 2
#define FAILED 3
#define NONE 255

byte line[WAYS], state[WAYS], pins[WAYS];
bit committed[WAYS];  /* a ghost: what the way says is not to be undone */
byte content[WAYS];   /* the line whose bytes the frame has; NONE while they are being written */
byte header;
byte running;

#define HAS(w, l) (committed[w] && state[w] != EMPTY && line[w] == l)
#define AT_REST(s, p) (s != FILLING && (p == 0 || CLAIM_IGNORES_PINS))

inline unpin(w) {
  d_step { assert(pins[w] > 0); pins[w]-- }
}

/* One way after the other; the valid entry of the line first. */
inline scan() {
  d_step { l0 = line[0]; s0 = state[0]; p0 = pins[0] }
  d_step { l1 = line[1]; s1 = state[1]; p1 = pins[1] }
  d_step {
    if
    :: l0 == l && s0 == VALID -> w = 0
    :: else ->
       if
       :: l1 == l && s1 == VALID -> w = 1
       :: else ->
          if
          :: l0 == l && s0 != EMPTY -> w = 0
          :: else ->
             if
             :: l1 == l && s1 != EMPTY -> w = 1
             :: else -> w = NONE
             fi
          fi
       fi
    fi
  }
}

inline forget() {
  d_step { h = 0; w = NONE; l0 = 0; l1 = 0; s0 = 0; s1 = 0; p0 = 0; p1 = 0; seen = 0; ok = 0 }
}

proctype user() {
  byte k, l, h, w, l0, l1, s0, s1, p0, p1, seen;
  bit ok;

next:
  skip;
  forget();
  if
  :: k == ACCESSES -> goto over
  :: k < ACCESSES -> k++
  fi;
  if
  :: l = 0
  :: _pid > 2 || ACCESSES > 1 -> l = 1 /* of three threads two want the same line */
  fi;

look:
  skip;
  if
  :: !HEADER_AFTER_SCAN -> h = header
  :: else
  fi;
  scan();
  if
  :: w != NONE -> goto found
  :: else
  fi;
  if
  :: HEADER_AFTER_SCAN -> h = header
  :: else
  fi;
  if
  :: AT_REST(s0, p0) -> w = 0
  :: AT_REST(s1, p1) -> w = 1
  :: !AT_REST(s0, p0) && !AT_REST(s1, p1) -> /* no_frame: nothing is held; the deadline, or another look */
     if
     :: goto next
     :: ((pins[0] == 0 && state[0] != FILLING) || (pins[1] == 0 && state[1] != FILLING)); forget(); goto look
     fi
  fi;
  d_step { /* the claim */
    if
    :: w == 0 && line[0] == l0 && state[0] == s0 && pins[0] == p0 -> ok = 1
    :: w == 1 && line[1] == l1 && state[1] == s1 && pins[1] == p1 -> ok = 1
    :: else -> ok = 0
    fi;
    if
    :: ok -> line[w] = l; state[w] = FILLING; pins[w] = 1; committed[w] = 0
    :: else
    fi;
    l0 = 0; l1 = 0; s0 = 0; s1 = 0; p0 = 0; p1 = 0
  }
  if
  :: !ok -> forget(); goto look
  :: else
  fi;
  d_step { /* the commit */
    if
    :: header == h || NO_COMMIT -> header++; committed[w] = 1; ok = 1
    :: else -> ok = 0
    fi;
    h = 0
  }
  if
  :: !ok -> /* undo */
     d_step { assert(state[w] == FILLING && pins[w] > 0); state[w] = EMPTY; pins[w]-- }
     forget();
     goto look
  :: else
  fi;

fill:
  skip;
  /* Nobody has submitted before: a line is in one frame, and only its owner writes there. */
  assert(!HAS(1 - w, l));
  assert(state[w] == FILLING && line[w] == l);
  d_step { content[w] = NONE; h = 0; ok = 0; l0 = 0; l1 = 0; s0 = 0; s1 = 0; p0 = 0; p1 = 0; seen = 0 }
  d_step { assert(state[w] == FILLING && line[w] == l && content[w] == NONE); content[w] = l }
  if
  :: state[w] = VALID
  :: state[w] = FAILED
  fi;
  goto wait;

found:
  skip;
  d_step { seen = (w == 0 -> s0 : s1) }
  if
  :: seen == FAILED -> /* its entry is claimed as it stands, and keeps its frame */
     d_step {
       if
       :: w == 0 && line[0] == l0 && state[0] == s0 && pins[0] == 0 -> ok = 1
       :: w == 1 && line[1] == l1 && state[1] == s1 && pins[1] == 0 -> ok = 1
       :: else -> ok = 0
       fi;
       if
       :: ok -> state[w] = FILLING; pins[w] = 1
       :: else
       fi
     }
     if
     :: ok -> goto fill
     :: else -> (pins[w] == 0 || state[w] != FAILED || line[w] != l); forget(); goto look
     fi
  :: else
  fi;
  d_step { /* join, pin */
    ok = (state[w] == FILLING || state[w] == VALID) && (line[w] == l || JOIN_WITHOUT_A_LOOK);
    pins[w]++;
    h = 0; seen = 0; l0 = 0; l1 = 0; s0 = 0; s1 = 0; p0 = 0; p1 = 0
  }
  if
  :: !ok -> unpin(w); forget(); goto look
  :: else -> ok = 0
  fi;

wait:
  skip;
  (state[w] != FILLING);
  seen = state[w];
  if
  :: seen == VALID ->
     assert(line[w] == l && content[w] == l);
     assert(state[w] == VALID && content[w] == l); /* under the pin it stays */
     assert(!HAS(1 - w, l));
     unpin(w);
     goto next
  :: seen == FAILED -> unpin(w); goto next
  :: seen == EMPTY -> unpin(w); forget(); goto look
  :: seen == FILLING -> goto wait
  fi;

over:
  skip;
  running--
}

init {
  byte i;
  d_step {
    line[0] = 2; line[1] = 3; content[0] = 2; content[1] = 3;
    state[0] = VALID; state[1] = VALID; committed[0] = 1; committed[1] = 1;
    running = THREADS
  }
  atomic {
    do
    :: i < THREADS -> run user(); i++
    :: else -> break
    od
  }
  d_step {
    (running == 0);
    assert(pins[0] == 0 && pins[1] == 0);
    assert(state[0] == EMPTY || state[1] == EMPTY || line[0] != line[1])
  }
}
