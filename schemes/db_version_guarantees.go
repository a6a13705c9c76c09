package schemes

import "stockproof/model"

var dbVersionGuarantees = Guarantees{[]Weakness{
	{Fault: "none", Workloads: []string{"mixed", "restock"}, Breaks: []model.Property{model.Unsold},
		Why: "who read a version that is no longer the newest is sent away"},
	{Fault: "none", Workloads: []string{"unit"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "who read a version that is no longer the newest is sent away"},
	{Fault: "client-crash", Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "who read a version that is no longer the newest is sent away; the fault adds nothing"},
	{Fault: "client-pause", Workloads: []string{"mixed"}, Breaks: []model.Property{model.Unsold},
		Why: "who read a version that is no longer the newest is sent away"},
	{Fault: "client-pause", Workloads: []string{"unit", "restock"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "who read a version that is no longer the newest is sent away"},
	{Fault: "request-lost", Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "who read a version that is no longer the newest is sent away; the fault adds nothing"},
	{Fault: "reply-lost", Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "who read a version that is no longer the newest is sent away; the fault adds nothing"},
	{Fault: "request-delayed", Breaks: []model.Property{model.Unsold},
		Why: "who read a version that is no longer the newest is sent away; the fault adds nothing"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.Unsold},
		Why: "who read a version that is no longer the newest is sent away; the order number stops the second purchase"},
	{Fault: "commit-reply-lost", Breaks: []model.Property{model.Unsold},
		Why: "who read a version that is no longer the newest is sent away; the order settles the doubt"},
}}
