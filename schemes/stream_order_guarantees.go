package schemes

import "stockproof/model"

var streamOrderGuarantees = Guarantees{[]Weakness{
	{Fault: "reply-lost", Retries: "default", Breaks: []model.Property{model.LostUnits, model.OrderMismatch, model.FalseSoldOut, model.NonLinearizable},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"mixed"}, Retries: "default", Breaks: []model.Property{model.DoubleDeduct},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.PhantomUnits},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"unit", "restock"}, Retries: "default", Breaks: []model.Property{model.DoubleDeduct}, World: "explore",
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "request-delayed", Retries: "default", Breaks: []model.Property{model.LostUnits, model.DoubleDeduct, model.OrderMismatch, model.FalseSoldOut, model.NonLinearizable},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.PhantomUnits},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.DoubleDeduct, model.DoubleSale, model.OrderMismatch},
		Why: "the second submission deducts and is answered sold; its order is the first one's"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.OrderMismatch, model.NonLinearizable},
		Why: "Redis forgets what it had acknowledged, messages as well as the counter"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets what it had acknowledged, messages as well as the counter"},
}}
