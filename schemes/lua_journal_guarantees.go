package schemes

import "stockproof/model"

var luaJournalGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.LostUnits},
		Why: "the script took the unit, nobody told the buyer; the record is for repeats and nobody reads it"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.NonLinearizable}, World: "explore",
		Why: "the unit is gone and the buyer unknown, unless somebody asks again; restocks are not recorded"},
	{Fault: "reply-lost", Retries: "off", Breaks: []model.Property{model.LostUnits},
		Why: "the unit is gone and the buyer unknown, unless somebody asks again; restocks are not recorded"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.PhantomUnits},
		Why: "the unit is gone and the buyer unknown, unless somebody asks again; restocks are not recorded"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.PhantomUnits},
		Why: "the server executes the step later, perhaps after the record of its repeat has ended; restocks are not recorded"},
	{Fault: "request-delayed", Breaks: []model.Property{model.LostUnits},
		Why: "the server executes the step later, perhaps after the record of its repeat has ended; restocks are not recorded"},
	{Fault: "request-delayed", Retries: "default", Breaks: []model.Property{model.DoubleDeduct, model.FalseSoldOut, model.NonLinearizable},
		Why: "the server executes the step later, perhaps after the record of its repeat has ended; restocks are not recorded"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.DoubleDeduct, model.DoubleSale},
		Why: "the request comes again after its record has ended; or it is told the sold-out of its first time"},
	{Fault: "duplicate-request", Workloads: []string{"restock"}, Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "the request comes again after its record has ended; or it is told the sold-out of its first time"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.NonLinearizable},
		Why: "Redis forgets what it had acknowledged"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets what it had acknowledged"},
}}
