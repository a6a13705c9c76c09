package schemes

// What sql-first promises is everything.
var sqlFirstGuarantees = Guarantees{}
