/* hincrby: decrement, look, give back. Client retries off, quantity 1.
   A pause has no meaning of its own here: no lease can end meanwhile. */
#include "common.h"

active [N] proctype Client() {
  int seen;
  /* HINCRBY -1 */
  if
  :: atomic { stock--; seen = stock; moment() }
  :: atomic { CRASH && left > 0 -> left--; stock--; moment(); goto dead }
  :: atomic { LOST && left > 0 -> left--; goto done }            /* unknown */
  :: atomic { REPLY && left > 0 -> left--; stock--; moment(); goto done }
  fi;
  if
  :: seen >= 0 -> atomic { sold++; goto done }
  :: else
  fi;
  /* HINCRBY +1; the answer is sold-out whatever becomes of it */
  if
  :: atomic { stock++; goto done }
  :: atomic { CRASH && left > 0 -> left--; stock++; goto dead }
  :: atomic { LOST && left > 0 -> left--; goto done }
  :: atomic { REPLY && left > 0 -> left--; stock++; goto done }
  fi;
dead: skip;
done: ended++
}
