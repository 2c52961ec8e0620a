// Package podnet is a network like that of one node of a cluster: a namespace of its own
// with addresses for pods that are not loopback, and a Service, an address behind which
// the kernel sends each new connection to a pod by chance, as kube-proxy has it do.
//
// Start starts the process that holds the namespace, Serve is what that does. Processes
// are started in it by what Net.Enter puts before their commands. When the process that
// has started it dies, it ends and the network with it; the network of the machine is
// not touched.
package podnet
