package schemes

var sqlConditionalGuarantees = Guarantees{}
var sqlForUpdateGuarantees = Guarantees{}
var dbVersionRetryGuarantees = Guarantees{}
var outboxGuarantees = Guarantees{}
var streamOrderGuarantees = Guarantees{}
var streamOrderBlindGuarantees = Guarantees{}
var degradeGuarantees = Guarantees{}
var reconcileNaiveGuarantees = Guarantees{}
var reserveConfirmGuarantees = Guarantees{}
var reserveConfirmOnceGuarantees = Guarantees{}
var reconcileDiffGuarantees = Guarantees{}
