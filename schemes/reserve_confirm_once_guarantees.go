package schemes

import "stockproof/model"

var reserveConfirmOnceGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "units that a request holds and will not order are hidden from others until they are given back"},
	{Fault: "client-pause", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "units reserved by a client that stands still are hidden, and its late order is refused"},
	{Fault: "request-lost", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "units that a request holds and will not order are hidden from others until they are given back"},
	{Fault: "reply-lost", Retries: "off", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "units that a request holds and will not order are hidden from others until they are given back"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.PhantomUnits, model.NonLinearizable},
		Why: "go-redis sends a restock again, which has been executed"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "go-redis sends a restock again, which has been executed"},
	{Fault: "request-delayed", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "units that a request holds and will not order are hidden from others until they are given back"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.PhantomUnits},
		Why: "go-redis sends a restock again, which has been executed"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "the submission that took the units is refused, and a later one has them: who came between was told sold out"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.NonLinearizable},
		Why: "Redis forgets reservations and deductions that it had acknowledged"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets reservations and deductions that it had acknowledged"},
}}
