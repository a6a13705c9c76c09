package schemes

import "stockproof/model"

var luaGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.LostUnits},
		Why: "the script took the unit, nobody told the buyer"},
	{Fault: "reply-lost", Breaks: []model.Property{model.LostUnits},
		Why: "the unit is gone and the buyer unknown; the library's repeat finds too few left"},
	{Fault: "reply-lost", Retries: "default", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "the unit is gone and the buyer unknown; the library's repeat finds too few left"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.PhantomUnits},
		Why: "the unit is gone and the buyer unknown; the library's repeat finds too few left"},
	{Fault: "reply-lost", Workloads: []string{"mixed"}, Retries: "default", Breaks: []model.Property{model.DoubleDeduct},
		Why: "the unit is gone and the buyer unknown; the library's repeat finds too few left"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "the unit is gone and the buyer unknown; the library's repeat finds too few left"},
	{Fault: "reply-lost", Workloads: []string{"unit", "restock"}, Retries: "default", Breaks: []model.Property{model.DoubleDeduct}, World: "explore",
		Why: "the unit is gone and the buyer unknown; the library's repeat finds too few left"},
	{Fault: "request-delayed", Breaks: []model.Property{model.LostUnits},
		Why: "the client gives up, the server executes the step later"},
	{Fault: "request-delayed", Retries: "default", Breaks: []model.Property{model.DoubleDeduct, model.FalseSoldOut, model.NonLinearizable},
		Why: "the client gives up, the server executes the step later"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.PhantomUnits},
		Why: "the client gives up, the server executes the step later"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.DoubleDeduct, model.DoubleSale},
		Why: "the second submission of a request is a purchase of its own"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.NonLinearizable},
		Why: "Redis forgets what it had acknowledged"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets what it had acknowledged"},
}}
