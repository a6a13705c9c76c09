package schemes

// The declared guarantees, filled from what the suite shows.
var (
	hincrbyGuarantees      Guarantees
	luaGuarantees          Guarantees
	lockGuarantees         Guarantees
	lockWatchdogGuarantees Guarantees
	lockSetGuarantees      Guarantees
	luaLockGuarantees      Guarantees
	dbVersionGuarantees    Guarantees
	naiveGuarantees        Guarantees
	naiveSetGuarantees     Guarantees
)
