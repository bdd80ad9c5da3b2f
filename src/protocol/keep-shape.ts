const kept: object[] = []

/**
 * Keeps one object of a class alive, which must hold no data of any customer. V8 discards the code that it compiled for
 * a class when a full collection finds none of its objects alive, and then compiles it again. Without this, that
 * happens at each collection for classes whose objects live only for a moment.
 */
export function keepShape(sample: object): void {
  kept.push(sample)
}
