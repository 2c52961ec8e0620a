package handover

import "fmt"

// maxFaults bounds the bytes of the faults that Refuse tells. Encoded they may be six
// times as long, and have to fit into one message.
const maxFaults = 8 << 10

// Refuse tells the process that has started this one as its successor why it will be
// none: what is wrong with what it was started with, one line each. It comes in place
// of Inherit, whose Predecessor has Fail for all that goes wrong later. In any other
// process it does nothing.
func Refuse(faults []string) {
	number := take(upgradeVariable)[upgradeVariable]
	if number == "" || len(faults) == 0 {
		return
	}
	file, err := inheritedFile(upgradeVariable, number)
	if err != nil {
		return // nobody is there who could be told
	}
	l, err := newLink(file)
	if err != nil {
		return
	}
	defer l.close()
	// A process that has ended or does not read will see that this one has ended.
	_ = l.send(&message{Kind: kindFailed, Error: firstOf(faults), Faults: bounded(faults)})
}

// firstOf is what a side is told that shows one line.
func firstOf(faults []string) string {
	if len(faults) == 1 {
		return faults[0]
	}
	return fmt.Sprintf("%s (and %d more)", faults[0], len(faults)-1)
}

// bounded returns as many lines as may be told, and how many are not.
func bounded(faults []string) (told []string) {
	room := maxFaults
	for i, fault := range faults {
		fault = oneLine(fault)
		if room -= len(fault); room < 0 {
			return append(told, fmt.Sprintf("and %d more", len(faults)-i))
		}
		told = append(told, fault)
	}
	return told
}

// RefusedError is why a new process has given up by itself.
type RefusedError struct {
	Reason string
	// Faults are what is wrong with its configuration or its command line, one line
	// each; none if something else was the reason.
	Faults []string
}

// Error implements error: one line.
func (e *RefusedError) Error() string { return e.Reason }
