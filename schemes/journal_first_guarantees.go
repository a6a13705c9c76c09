package schemes

import "stockproof/model"

var journalFirstGuarantees = Guarantees{[]Weakness{
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.OrderMismatch, model.NonLinearizable},
		Why: "Redis forgets what it had acknowledged, order and all"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets what it had acknowledged, order and all"},
}}
