// Package agent is a generator in a process of its own: `cabrank lab agent`. A run of a
// scenario starts one or several for each block, each with a part of the plan.
//
// Serve is the process; Start, in the process that runs the scenario, starts one and
// talks to it. A generator is a process since grpc-go's interval between two questions to
// a name server is one for a whole process, since descriptors are counted by process, and
// since what it uses is to stand beside what the service uses.
//
// They talk in JSON, a value on each line, over standard input and output:
//
//	→ Job              what to call, and how
//	← {"ready": ...}   the method is known, the connections stand; or {"answer": {"error": ...}}
//	→ {"at": TIME}     begin then
//	← {"answer": ...}  the record
//
// The end of the input, at any time, means that no more calls start. So no generator
// outlives the process that has started it for longer than its calls take.
package agent
