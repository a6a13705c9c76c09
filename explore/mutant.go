package explore

// mutant breaks the search on purpose. Tests show that each is convicted;
// nothing outside of tests sets one.
type mutant uint8

const (
	sound             mutant = iota
	pauseForgotten           // a paused client goes on at once
	delayForgotten           // a delayed command is never sent
	tokensKept               // clients are sorted, their names in the stores are not
	budgetForgotten          // states that differ only in the faults left are one
	jumpTooEarly             // time passes although somebody could run
	messagesLost             // an unlock message wakes nobody
	crashBefore              // a crash undoes the step it comes after
	orderForgotten           // all operations count as concurrent
	lossKept                 // a store that loses writes keeps them
	restartKept              // a restart loses nothing
	evictionForgotten        // a key that is evicted is still there
	expiryOfAll              // all keys expire with those that were loaded
	replicaCaughtUp          // the replica that takes over lacks nothing
	waitBlind                // WAIT does not see that the link is broken
	bufferDropped            // a server that stood still drops the commands of those who left
	commitsKept              // a database that loses commits keeps them
	sessionsKept             // a database that restarts breaks no connection
	jobLost                  // a job begins and does nothing
	touchForgotten           // a watched key that is touched is not noticed
	sessionLeft              // a connection that breaks leaves its transaction behind
	firstOnly                // of interchangeable clients only one execution is counted
)
