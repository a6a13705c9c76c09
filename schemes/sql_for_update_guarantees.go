package schemes

// sqlForUpdateGuarantees: it breaks nothing.
var sqlForUpdateGuarantees = Guarantees{}
