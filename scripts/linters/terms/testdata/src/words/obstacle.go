package words // want `file obstacle: use conflict, conditionError instead of "obstacle"`

import "fmt"

type worldHTTP struct { // want `identifier worldHTTP: use cluster, fixture instead of "world"`
	toldStatus int // want `identifier toldStatus: use reported instead of "told"`
}

// A part of another word is none: "mendable" has no "mend", and a use is not reported again.
func mendable(lane string) { // want `identifier lane: use environment instead of "lane"`
	fmt.Println(lane, "the Service is in the way", worldHTTP{}) // want `string: instead of "in the way": conflicts, blocks`
	again := func(againLater int) {}                            // want `identifier again: use requeueAfter`
	again(1)
	fmt.Println(`Tollgates: amended, lanesome`)
	fmt.Println("somebody else has it") // want `string: instead of "somebody": name the person`
}
