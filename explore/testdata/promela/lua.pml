/* lua-hash, lua-string: compare and decrement in one script. Client retries
   off, quantity 1. */
#include "common.h"

active [N] proctype Client() {
  if
  :: atomic { stock >= 1 -> stock--; moment(); sold++ }
  :: atomic { stock < 1 -> skip }                                /* sold-out */
  :: atomic { CRASH && left > 0 -> left--; if :: stock >= 1 -> stock-- :: else fi; moment() }
  :: atomic { LOST && left > 0 -> left-- }                       /* unknown */
  :: atomic { REPLY && left > 0 -> left--; if :: stock >= 1 -> stock-- :: else fi; moment() }
  fi;
  ended++
}
