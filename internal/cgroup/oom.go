package cgroup

// OOMKills returns how many processes of this process's control group the kernel has
// killed because memory was used up; false if the group does not tell. With version 2
// groups below it are counted, too; where it has no memory controller of its own, the
// nearest group above that has one is asked.
//
// Source: Linux Documentation/admin-guide/cgroup-v2.rst, memory.events; with version 1
// memory.oom_control has it since Linux 4.13.
func (s *Self) OOMKills() (count int64, known bool) {
	for _, group := range s.memory {
		name := "memory.oom_control"
		if group.v2 {
			name = "memory.events"
		}
		if count, known = field(readFile(s.root, group.path+"/"+name, roomForLine), "oom_kill", ""); known {
			return count, true
		}
	}
	return 0, false
}
