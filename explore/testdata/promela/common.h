/* What the models share. Set from outside: N clients, S units, FAULTS how many
   faults, CRASH PAUSE LOST REPLY which kinds (0 or 1).

   The laws, as in package model, told apart by a number in the text of the
   assertion: 1 transient negative, 2 permanent negative, 3 oversold, 4 units
   lost, 5 phantom units. The verifier is told to go on after a violation. */
#define law(number, kept) assert((kept) || number == 0)

int stock = S;
byte sold = 0;      /* units answered sold */
byte ended = 0;     /* clients that will do nothing any more */
byte left = FAULTS; /* faults that may still happen */

inline moment() {
  law(1, stock >= 0)
}

/* At rest: nothing is in flight, everybody is done or dead. */
active proctype Rest() {
  ended == N;
  law(2, stock >= 0);
  law(3, sold <= S);
  law(4, S - stock - sold <= 0);
  law(5, stock + sold <= S)
}
