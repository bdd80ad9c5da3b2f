/**
 * A promise of the request that asks, which ends as this one of another request does. Right after a wait for a promise of another
 * request, code that V8 has optimised goes on as that request, and the runtime refuses it what belongs to its own. The runtime
 * ends a request as hung that waits for nothing else: the caller has a timer of its own beside it.
 */
export function ownPromise<Value>(ofAnother: Promise<Value>): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  void ofAnother.then(resolve, reject)
  return promise
}
