const kept: object[] = []

/**
 * Keeps an object that stands for all of its class, and that has nothing of anybody. V8 discards what it compiled for the
 * objects of a class when a full collection finds none of them alive, and then compiles it anew. Of objects that live for a
 * moment it finds none each time.
 */
export function keepShape(sample: object): void {
  kept.push(sample)
}
