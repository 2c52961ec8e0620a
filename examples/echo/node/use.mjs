// use has one thread compute for so many milliseconds, and is what an answer takes. The clock
// is that of the process, whose other threads do next to nothing.
export function use(millis) {
  const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  const upTo = used() + Math.min(millis, 1000);
  while (used() < upTo);
}

// numbers are those of a stream's answers. Each lets other calls have their turn first.
export async function* numbers(count) {
  for (let number = 1; number <= Math.min(count, 10_000); number++) {
    await new Promise(setImmediate);
    yield number;
  }
}

export const port = Number(process.env.PORT ?? 50051);
