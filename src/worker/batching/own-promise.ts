/**
 * Returns a promise of the current request that settles like this promise of another request. Right after awaiting a promise
 * of another request, code that V8 has optimised continues as that request, and the runtime refuses it what belongs to its
 * own. The caller must also have a timer of its own, because the runtime ends a request as hung that awaits only another
 * request's promise.
 */
export function ownPromise<Value>(ofAnother: Promise<Value>): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  void ofAnother.then(resolve, reject)
  return promise
}
