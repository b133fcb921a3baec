/* A claim in the `set_associative` directory: scan, claim of a victim way, commit at the header of the line's home, undo, join,
 * publish, unpin (cache/set_claim.hpp, cache/line_cache_view.hpp). Sequentially consistent memory and lone threads.
 *
 * A word is split into line, state and pins; what the code does in one read-modify-write is one d_step. The ways are looked at
 * one after the other. Left out are the version (a compare-and-swap here may succeed where the code's fails), the
 * hand and the referenced bit (any way at rest may be the victim, at home first), dirty and writing.
 *
 * Two ways, which hold other lines at first: of one set (SETS 1), or each a set (SETS 2), the second one at distance 1 from the
 * home of lines 0 to 2 and the home of line 3. THREADS with ACCESSES reads each. MUTANT 0: as in the code.
 */
#ifndef SETS
#define SETS 1
#endif
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
#define COMMIT_WHERE_THE_WAY_IS (MUTANT == 5) /* E7 */
#define FORGETS_OTHERS_AWAY (MUTANT == 6)     /* E7 */

#define WAYS 2
#define EMPTY 0
#define FILLING 1
#define VALID 2
#define FAILED 3
#define NONE 255
#define HOME(l) (SETS == 2 && l == 3)
#define AWAY 1 /* of a header: a line of this home may be in the other set. The rest counts commits */

byte line[WAYS], state[WAYS], pins[WAYS];
bit committed[WAYS];  /* a ghost: what the way says is not to be undone */
byte content[WAYS];   /* the line whose bytes the frame has; NONE while they are being written */
byte header[2];
byte running;

#define HAS(w, l) (committed[w] && state[w] != EMPTY && line[w] == l)
#define AT_REST(s, p) (s != FILLING && (p == 0 || CLAIM_IGNORES_PINS))

inline unpin(w) {
  d_step { assert(pins[w] > 0); pins[w]-- }
}

inline load(v) {
  d_step { sl[v] = line[v]; ss[v] = state[v]; sp[v] = pins[v]; saw[v] = 1 }
}

/* One way after the other, of the other set only where the header names it; the valid entry of the line first. */
inline scan() {
  load(home);
  if
  :: SETS == 1 || (h & AWAY) -> load(1 - home)
  :: else
  fi;
  d_step {
    away = (saw[1 - home] && ss[1 - home] != EMPTY && SETS == 2 && HOME(sl[1 - home]) == home) && !FORGETS_OTHERS_AWAY;
    if
    :: saw[home] && sl[home] == l && ss[home] == VALID -> w = home
    :: else ->
       if
       :: SETS == 2 && sl[home] == l && ss[home] != EMPTY -> w = home
       :: else ->
          if
          :: saw[1 - home] && sl[1 - home] == l && ss[1 - home] == VALID -> w = 1 - home
          :: else ->
             if
             :: sl[home] == l && ss[home] != EMPTY -> w = home
             :: else ->
                if
                :: saw[1 - home] && sl[1 - home] == l && ss[1 - home] != EMPTY -> w = 1 - home
                :: else -> w = NONE
                fi
             fi
          fi
       fi
    fi
  }
}

inline forget_scan() {
  d_step {
    sl[0] = 0; sl[1] = 0; ss[0] = 0; ss[1] = 0; sp[0] = 0; sp[1] = 0; saw[0] = 0; saw[1] = 0; seen = 0; h = 0; away = 0
  }
}

inline forget() {
  d_step { forget_scan(); w = NONE; ok = 0 }
}

proctype user() {
  byte k, l, h, w, home, seen, sl[2], ss[2], sp[2];
  bit ok, away, saw[2];

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
  :: SETS == 2 && (_pid > 2 || ACCESSES > 1) -> l = 3
  fi;
  home = HOME(l);

look:
  skip;
  if
  :: !HEADER_AFTER_SCAN -> h = header[home]
  :: else
  fi;
  scan();
  if
  :: w != NONE -> goto found
  :: else
  fi;
  if
  :: HEADER_AFTER_SCAN -> h = header[home]
  :: else
  fi;
  if
  :: saw[1 - home] || AT_REST(ss[home], sp[home])
  :: else -> load(1 - home)
  fi;
  if
  :: AT_REST(ss[home], sp[home]) -> w = home
  :: saw[1 - home] && AT_REST(ss[1 - home], sp[1 - home]) && (SETS == 1 || !AT_REST(ss[home], sp[home])) -> w = 1 - home
  :: !AT_REST(ss[home], sp[home]) && !AT_REST(ss[1 - home], sp[1 - home]) -> /* no_frame: nothing is held; the deadline, or another look */
     if
     :: forget(); goto next
     :: ((pins[0] == 0 && state[0] != FILLING) || (pins[1] == 0 && state[1] != FILLING)); forget(); goto look
     fi
  fi;
  d_step { /* the claim */
    ok = line[w] == sl[w] && state[w] == ss[w] && pins[w] == sp[w];
    if
    :: ok -> line[w] = l; state[w] = FILLING; pins[w] = 1; committed[w] = 0
    :: else
    fi
  }
  if
  :: !ok -> forget(); goto look
  :: else
  fi;
  d_step { /* the commit */
    if
    :: COMMIT_WHERE_THE_WAY_IS && w != home -> header[w] = header[w] + 2; header[home] = header[home] | AWAY; committed[w] = 1; ok = 1
    :: !(COMMIT_WHERE_THE_WAY_IS && w != home) && (header[home] == h || NO_COMMIT) ->
       header[home] = ((h >> 1) + 1) << 1 | (SETS == 2 && (away || w != home));
       committed[w] = 1;
       ok = 1
    :: else -> ok = 0
    fi
  }
  forget_scan();
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
  assert(SETS == 1 || w == home || (header[home] & AWAY));
  d_step { content[w] = NONE; ok = 0 }
  d_step { assert(state[w] == FILLING && line[w] == l && content[w] == NONE); content[w] = l }
  if
  :: state[w] = VALID
  :: state[w] = FAILED
  fi;
  goto wait;

found:
  skip;
  seen = ss[w];
  if
  :: seen == FAILED -> /* its entry is claimed as it stands, and keeps its frame */
     d_step {
       ok = line[w] == sl[w] && state[w] == ss[w] && pins[w] == 0;
       if
       :: ok -> state[w] = FILLING; pins[w] = 1
       :: else
       fi
     }
     if
     :: ok -> forget_scan(); goto fill
     :: else -> (pins[w] == 0 || state[w] != FAILED || line[w] != l); forget(); goto look
     fi
  :: else
  fi;
  d_step { /* join, pin */
    ok = (state[w] == FILLING || state[w] == VALID) && (line[w] == l || JOIN_WITHOUT_A_LOOK);
    pins[w]++
  }
  forget_scan();
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
    assert(state[0] == EMPTY || state[1] == EMPTY || line[0] != line[1]);
    assert(SETS == 1 || state[1] == EMPTY || HOME(line[1]) == 1 || (header[0] & AWAY));
    assert(SETS == 1 || state[0] == EMPTY || HOME(line[0]) == 0 || (header[1] & AWAY))
  }
}
