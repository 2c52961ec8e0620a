// Package rig starts the processes of one arm of a scenario, watches what they use, does
// to them what a scenario says, and leaves none of them.
//
// Start from Start, Rig.Target and Rig.Caller; then Rig.Usage, Rig.Do and Rig.Close. How
// it goes:
//
//  1. Workers are started, each in a process group of its own, and asked until they
//     answer; then the front, if there is one, with the workers behind it.
//  2. Whoever makes calls is started by what Caller returns, and calls Target.
//  3. Close ends all of it. When this process is killed, `cabrank keeper` does.
//
// Workers are told where to listen as `cabrank run` tells them: {addr}, {host}, {port},
// {index}, {worker}, {slots} and {threads} in the command and in the environment, and
// CABRANK_ADDR, PORT, CABRANK_WORKER, CABRANK_WORKER_INDEX, CABRANK_SLOTS, CABRANK_THREADS
// and RAILS_MAX_THREADS. So one command serves all arms. But threads are as many as slots:
// without Cabrank before it nothing else bounds how many calls a worker runs.
//
// It makes no calls but the question whether somebody answers, and judges nothing.
package rig
