/* Fills that are claimed in turn (cache/fill_admission.hpp; line_request::queue_up, wait_for_turn, give_tickets_back). Sequentially
 * consistent memory and lone threads, which read lines of their own.
 *
 * THREADS with ACCESSES accesses each; MOST of FRAMES frames are claimed by turn. LATE accesses meet their deadline while they
 * wait, and try without their turn: they find a frame, or none. No thread hangs; no more than MOST claim at a time, and one for
 * each that was late; in the end all tickets are back. MUTANT 0: as in the code.
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef ACCESSES
#define ACCESSES 2
#endif
#ifndef FRAMES
#define FRAMES 2
#endif
#ifndef MOST
#define MOST 1
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define LATE_KEEPS_ITS_TICKET (MUTANT == 1) /* F4 */
#define ONE_TOO_MANY (MUTANT == 2)          /* F1 */
#define GIVES_BACK_TWICE (MUTANT == 3)
#define TURN_AFTER_THE_FRAME (MUTANT == 4) /* W4: a frame is held while the thread waits for its turn */

byte next, done;
byte frames = FRAMES; /* that can be had */
byte claims, late;
byte running;

#define ADMITTED (ticket < done + MOST + ONE_TOO_MANY)

inline claim() {
  atomic { frames > 0; frames-- }
}

proctype thread() {
  byte n, ticket;
  bool was_late, has_frame;
  do
  :: n == ACCESSES -> break
  :: else ->
     was_late = false;
     has_frame = true;
     d_step { ticket = next; next++ }
     if
     :: TURN_AFTER_THE_FRAME -> claim()
     :: else
     fi;
     if
     :: ADMITTED
     :: atomic { late < LATE && !ADMITTED -> late++; was_late = true }
     fi;
     if
     :: !TURN_AFTER_THE_FRAME && !was_late -> claim()
     :: !TURN_AFTER_THE_FRAME && was_late ->
        if
        :: claim()
        :: atomic { frames == 0 -> has_frame = false }
        fi
     :: else
     fi;
     if
     :: has_frame ->
        d_step { claims++; assert(claims <= MOST + late) }
        /* the fill, and the reads */
        d_step { claims--; frames++ }
     :: else
     fi;
     if
     :: LATE_KEEPS_ITS_TICKET && was_late
     :: else -> d_step { done++; assert(done <= next) }
     fi;
     if
     :: GIVES_BACK_TWICE -> done++
     :: else
     fi;
     n++
  od;
  running--
}

init {
  byte t;
  atomic {
    running = THREADS;
    for (t : 1 .. THREADS) { run thread() }
  }
  running == 0;
  assert(done == next && frames == FRAMES)
}
