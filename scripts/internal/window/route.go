package window

import "example.com/operator-workshop/scripts/internal/translation"

// A step of the route of 90 minutes is a page that is read to a place, or an exercise that is passed.
type step struct {
	Title   string
	Minutes int
	Page    string
	// Until is the heading, by its anchor, or a text in a block, that a reader sees when the step is done.
	Until    string
	Exercise string
}

// route is the row "have 90 minutes" of README.md, which a test compares.
var route = []step{
	{Title: translation.Mark("the demo"), Minutes: 10, Page: "04-controller-runtime/cmd/myweb-operator/README.md",
		Until: "what-happened"},
	{Title: translation.Mark("01 to step 5"), Minutes: 20, Page: "01-crd/README.md", Until: "steps/06-status-and-scale.yaml"},
	{Title: translation.Mark("stages 0 to 2 of 04"), Minutes: 35, Page: "04-controller-runtime/README.md", Until: "stage-3-own"},
	{Title: translation.Mark("exercise 04.3"), Minutes: 25, Exercise: "04.3"},
	{Title: translation.Mark("stage 4"), Minutes: 10, Page: "04-controller-runtime/stages/README.md", Until: "stage-5-update"},
}
