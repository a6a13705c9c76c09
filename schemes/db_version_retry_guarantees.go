package schemes

import "stockproof/model"

var dbVersionRetryGuarantees = Guarantees{[]Weakness{
	{Fault: "none", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "client-crash", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "client-pause", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "request-lost", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold}, World: "explore",
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold},
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "duplicate-request", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold},
		Why: "each of three attempts met somebody who was faster"},
	{Fault: "commit-reply-lost", Workloads: []string{"restock"}, Breaks: []model.Property{model.Unsold},
		Why: "each of three attempts met somebody who was faster"},
}}
