import type { Observable } from 'rxjs';

// eachOf goes through what an Observable sends. What comes faster than it is taken waits in
// memory: an Observable cannot be slowed down.
export async function* eachOf<T>(source: Observable<T>): AsyncGenerator<T> {
  const waiting: T[] = [];
  let wake = () => {};
  let over = false;
  let failure: { error: unknown } | undefined;
  const subscription = source.subscribe({
    next: (value) => { waiting.push(value); wake(); },
    error: (error) => { failure = { error }; wake(); },
    complete: () => { over = true; wake(); },
  });
  try {
    for (;;) {
      while (waiting.length > 0) yield waiting.shift() as T;
      if (failure) throw failure.error;
      if (over) return;
      await new Promise<void>((resolve) => { wake = resolve; });
    }
  } finally {
    subscription.unsubscribe();
  }
}
