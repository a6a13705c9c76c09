package schemes

// sqlConditionalGuarantees: it breaks nothing.
var sqlConditionalGuarantees = Guarantees{}
