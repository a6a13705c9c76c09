/* lock: Redisson's protocol around read, compare, decrement. Client retries
   off, quantity 1. Time in units of 100 ms: lease 3, wait 1, retry 1.

   ready counts the clients that have arrived, run, and have a step to make:
   while there is one, no time passes. When there is none, time jumps to the
   next deadline. Somebody who has not arrived does not hold the clock; a
   paused client neither, and it goes on only after a jump. */
#include "common.h"
#define LEASE 3
#define WAIT 1
#define NOBODY 255

byte holder = NOBODY;
byte ttl = 0;
byte ready = 0;
byte waiting = 0;       /* clients that run and wait for a message or a timer */
byte waits[N];          /* left of such a wait, 0: none */
byte messages[N];       /* unlock messages not read yet */
bool subscribed[N];     /* between the first attempt that failed and the end */
bool expired[N];        /* time has passed since it began to try */
bool inWait[N];
bool woken[N];          /* a message ended its wait */
bool over[N];           /* its deadline ended its wait */
bool stopped[N];        /* paused, no jump yet */
bool rested[N];         /* paused, time has jumped */

#define deadline (ttl > 0 || waiting > 0)
#define halted(k) (stopped[k] || rested[k])
#define mayResume (rested[me] || (stopped[me] && ready == 0 && !deadline))
#define fault(kind) (kind && left > 0) -> left--

inline acquire(ok) {
  if
  :: holder == NOBODY || holder == me -> holder = me; ttl = LEASE; ok = true
  :: else -> ok = false
  fi
}

inline release() {
  if
  :: holder == me ->
     holder = NOBODY; ttl = 0; i = 0;
     do
     :: i < N ->
        if
        :: subscribed[i] && inWait[i] && !woken[i] ->
           woken[i] = true; waits[i] = 0;
           if :: !halted(i) -> waiting--; ready++ :: else fi
        :: subscribed[i] && !(inWait[i] && !woken[i]) -> messages[i]++
        :: else
        fi;
        i++
     :: else -> break
     od;
     i = 0
  :: else
  fi
}

/* After a step has been executed a client may be stopped. */
inline perhapsPaused() {
  if
  :: true
  :: fault(PAUSE); stopped[me] = true; ready--
  fi
}

inline whilePaused() {
  if
  :: halted(me) -> atomic { mayResume -> stopped[me] = false; rested[me] = false; ready++ }
  :: else
  fi
}

active proctype Clock() {
  byte d, k;
end:
  do
  :: atomic { ready == 0 && deadline && ended < N ->
       d = ttl; k = 0;
       do
       :: k < N ->
          if :: waits[k] > 0 && !halted(k) && (d == 0 || waits[k] < d) -> d = waits[k] :: else fi;
          k++
       :: else -> break
       od;
       if
       :: ttl > 0 && ttl <= d -> ttl = 0; holder = NOBODY
       :: ttl > d -> ttl = ttl - d
       :: else
       fi;
       k = 0;
       do
       :: k < N ->
          if :: subscribed[k] -> expired[k] = true :: else fi;
          if
          :: waits[k] > 0 && waits[k] <= d ->
             waits[k] = 0; over[k] = true; subscribed[k] = false;
             if :: !halted(k) -> waiting--; ready++ :: else fi
          :: waits[k] > d -> waits[k] = waits[k] - d
          :: else
          fi;
          if :: stopped[k] -> stopped[k] = false; rested[k] = true :: else fi;
          k++
       :: else -> break
       od;
       d = 0; k = 0 }
  od
}

active [N] proctype Client() {
  byte me, i;
  bool ok, result;
  short v;
  atomic { me = _pid - FIRST }

  /* the first attempt; the client arrives with it */
  if
  :: atomic { acquire(ok); ready++; subscribed[me] = !ok; perhapsPaused() }
  :: atomic { fault(CRASH); acquire(ok); goto gone }
  :: atomic { fault(LOST); goto gone }                           /* failed */
  :: atomic { fault(REPLY); acquire(ok); goto gone }
  fi;
  whilePaused();
  if :: ok -> goto critical :: else fi;

again:
  if
  :: atomic { acquire(ok);
       if
       :: ok -> subscribed[me] = false; messages[me] = 0
       :: !ok && expired[me] -> subscribed[me] = false; ready--; goto gone   /* busy */
       :: !ok && !expired[me] && messages[me] > 0 -> messages[me]--
       :: else -> inWait[me] = true; waits[me] = WAIT; waiting++; ready--
       fi;
       if
       :: true
       :: fault(PAUSE); stopped[me] = true; if :: inWait[me] -> waiting-- :: else -> ready-- fi
       fi }
  :: atomic { fault(CRASH); acquire(ok); ready--; goto gone }
  :: atomic { fault(LOST); ready--; goto gone }
  :: atomic { fault(REPLY); acquire(ok); ready--; goto gone }
  fi;
  if
  :: inWait[me] -> skip
  :: else -> whilePaused(); if :: ok -> goto critical :: else -> goto again fi
  fi;

  /* A paused waiter still gets messages and reaches its deadline; what came
     first counts when it goes on. */
wait:
  if
  :: atomic { !halted(me) && over[me] -> inWait[me] = false; ready--; goto gone }           /* busy */
  :: atomic { !halted(me) && woken[me] -> inWait[me] = false; woken[me] = false; goto again }
  :: atomic { halted(me) && mayResume && over[me] -> stopped[me] = false; rested[me] = false; inWait[me] = false; goto gone }
  :: atomic { halted(me) && mayResume && woken[me] ->
       stopped[me] = false; rested[me] = false; inWait[me] = false; woken[me] = false; ready++; goto again }
  :: atomic { halted(me) && mayResume && !over[me] && !woken[me] -> stopped[me] = false; rested[me] = false; waiting++; goto wait }
  fi;

critical:
  /* HGET */
  if
  :: atomic { v = stock; perhapsPaused() }
  :: atomic { fault(CRASH); ready--; goto gone }
  :: atomic { fault(LOST); v = 0 }                               /* failed, then unlock */
  :: atomic { fault(REPLY); v = 0 }
  fi;
  whilePaused();
  if :: v >= 1 :: else -> goto unlock fi;
  /* HINCRBY -1 */
  if
  :: atomic { stock--; moment(); result = true; perhapsPaused() }
  :: atomic { fault(CRASH); stock--; moment(); ready--; goto gone }
  :: atomic { fault(LOST) }                                      /* unknown */
  :: atomic { fault(REPLY); stock--; moment() }
  fi;
  whilePaused();
unlock:
  if
  :: atomic { release(); sold = sold + result; ready-- }
  :: atomic { fault(CRASH); release(); ready-- }
  :: atomic { fault(LOST); sold = sold + result; ready-- }
  :: atomic { fault(REPLY); release(); sold = sold + result; ready-- }
  fi;
gone:
  atomic { subscribed[me] = false; messages[me] = 0; ended++ }
}
