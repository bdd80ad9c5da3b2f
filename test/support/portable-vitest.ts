/**
 * Stands in for vitest where a suite runs outside Node: collects tests, runs them one after another, and has the
 * few matchers that the suites of `src/verify` use. What it does not know throws, so that nothing passes unseen.
 */

export interface TestOutcome {
  readonly title: string
  /** What went wrong; undefined where the test passed. */
  readonly failure: string | undefined
}

type Work = () => unknown

interface Group {
  readonly title: string
  readonly before: Work[]
  readonly parent: Group | undefined
  started: boolean
}

interface Collected {
  readonly title: string
  readonly group: Group
  readonly work: Work
}

const root: Group = { title: '', before: [], parent: undefined, started: false }
const collection: { readonly tests: Collected[]; group: Group } = { tests: [], group: root }

/** Runs what the imported suites have registered. */
export async function runCollected(): Promise<TestOutcome[]> {
  const outcomes: TestOutcome[] = []
  for (const { title, group, work } of collection.tests) {
    outcomes.push({ title, failure: await failureOf(group, work) })
  }
  return outcomes
}

async function failureOf(group: Group, work: Work): Promise<string | undefined> {
  try {
    await enter(group)
    await work()
    return undefined
  } catch (error) {
    return error instanceof Error ? `${error.message}\n${error.stack}` : String(error)
  }
}

async function enter(group: Group): Promise<void> {
  if (group.parent !== undefined) await enter(group.parent)
  if (group.started) return
  group.started = true
  for (const work of group.before) await work()
}

/** A suite file is a group of its own, as its `beforeAll` is for its tests alone. */
export async function inFile(title: string, load: () => Promise<unknown>): Promise<void> {
  collection.group = { title: `${title} > `, before: [], parent: root, started: false }
  await load()
  collection.group = root
}

export function describe(title: string, register: Work): void {
  const parent = collection.group
  collection.group = { title: `${parent.title}${title} > `, before: [], parent, started: false }
  register()
  collection.group = parent
}

describe.skipIf = (skip: boolean) => (title: string, register: Work) => {
  if (!skip) describe(title, register)
}

export function test(title: string, work: Work): void {
  const { group } = collection
  collection.tests.push({ title: group.title + title, group, work })
}

test.each =
  <Value>(values: readonly Value[]) =>
  (title: string, work: (value: Value) => unknown) => {
    for (const value of values) test(title.replace(/%[si]/, String(value)), () => work(value))
  }

export function beforeAll(work: Work): void {
  collection.group.before.push(work)
}

/** Nothing here has a time limit. */
export const vi = { setConfig: () => {} }

class Matching {
  readonly pattern: RegExp
  constructor(pattern: RegExp) {
    this.pattern = pattern
  }
}

function fail(actual: unknown, relation: string, expected: unknown, message = ''): never {
  const [left, right] = [actual, expected].map((value) => JSON.stringify(value) ?? String(value))
  throw new Error(`${message} expected ${left} ${relation} ${right}`)
}

export function expect(actual: unknown, message?: string) {
  return {
    ...matchers(actual, (holds, relation, wanted) => {
      if (!holds) fail(actual, relation, wanted, message)
    }),
    not: matchers(actual, (holds, relation, wanted) => {
      if (holds) fail(actual, `not ${relation}`, wanted, message)
    }),
  }
}

/** Part of the message; an error's class; an error of which the class and the message are wanted; without it, anything. */
type Thrown = string | Error | (new (...values: never[]) => object) | undefined

function isThrown(thrown: unknown, wanted: Thrown): boolean {
  if (wanted === undefined) return thrown !== undefined
  if (typeof wanted === 'string') {
    return thrown instanceof Error && thrown.message.includes(wanted)
  }
  if (!(wanted instanceof Error)) return thrown instanceof wanted
  const isSame = thrown instanceof Error && thrown.message === wanted.message
  return isSame && thrown.constructor === wanted.constructor
}

function nameOf(wanted: Thrown): string {
  if (typeof wanted === 'object') return wanted.message
  return typeof wanted === 'string' ? wanted : (wanted?.name ?? 'anything')
}

type Claim = (holds: boolean, relation: string, wanted: unknown) => void

function matchers(actual: unknown, claim: Claim) {
  return {
    toBe: (wanted: unknown) => claim(Object.is(actual, wanted), 'to be', wanted),
    toEqual: (wanted: unknown) => claim(isEqual(actual, wanted), 'to equal', wanted),
    toMatchObject: (wanted: object) => claim(contains(actual, wanted), 'to contain', wanted),
    toHaveLength: (wanted: number) => claim(lengthOf(actual) === wanted, 'of length', wanted),
    toMatch: (wanted: string | RegExp) => claim(matches(actual, wanted), 'to match', `${wanted}`),
    toContain: (wanted: unknown) => claim(includes(actual, wanted), 'to contain', wanted),
    toBeUndefined: () => claim(actual === undefined, 'to be', 'undefined'),
    toBeInstanceOf: (wanted: new (...values: never[]) => object) =>
      claim(actual instanceof wanted, 'to be a', wanted.name),
    toBeGreaterThan: (wanted: number) =>
      claim(typeof actual === 'number' && actual > wanted, 'to be greater than', wanted),
    toThrow: (wanted?: Thrown) =>
      claim(isThrown(thrownBy(actual), wanted), 'to throw', nameOf(wanted)),
  }
}

function includes(actual: unknown, wanted: unknown): boolean {
  if (typeof actual === 'string') return typeof wanted === 'string' && actual.includes(wanted)
  if (Array.isArray(actual)) return actual.includes(wanted)
  throw new Error('only strings and lists contain something')
}

expect.stringMatching = (pattern: RegExp) => new Matching(pattern)

function matches(actual: unknown, wanted: string | RegExp): boolean {
  if (typeof actual !== 'string') return false
  return typeof wanted === 'string' ? actual.includes(wanted) : wanted.test(actual)
}

function lengthOf(value: unknown): unknown {
  return typeof value === 'string' || Array.isArray(value) || value instanceof Uint8Array
    ? value.length
    : undefined
}

function isEqual(left: unknown, right: unknown): boolean {
  if (right instanceof Matching) return matches(left, right.pattern)
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) {
    return Object.is(left, right)
  }
  const [ours, theirs] = [Object.keys(left), Object.keys(right)]
  return ours.length === theirs.length && contains(left, right)
}

function contains(actual: unknown, wanted: object): boolean {
  if (typeof actual !== 'object' || actual === null) return false
  const members = new Map<string, unknown>(Object.entries(actual))
  return Object.entries(wanted).every(([name, value]) => isEqual(members.get(name), value))
}

function thrownBy(work: unknown): unknown {
  if (typeof work !== 'function') return undefined
  try {
    work()
    return undefined
  } catch (error) {
    return error
  }
}
