/** One case of the fault matrix: what must be seen, and how it is provoked. Both are words for the table. */
export interface Trial<World> {
  readonly name: string
  readonly expected: string
  readonly run: (world: World) => Promise<string>
  /** Left out of the shortened form, which is part of the test command. */
  readonly long?: boolean
}

/** Trials that share one running stack. */
export interface Family<World> {
  readonly name: string
  readonly trials: readonly Trial<World>[]
  /** How many run at the same time. */
  readonly atATime: number
  readonly open: () => Promise<World>
  readonly close: (world: World) => Promise<void>
}

/** What a trial showed. */
export interface Verdict {
  readonly trial: string
  readonly expected: string
  readonly seen: string
}

/** Which trials to run. */
export interface Choice {
  /** Without the long ones. */
  readonly short: boolean
  /** Only those with this in their name. */
  readonly named?: string
}

/** A family whose world only it knows. */
export interface AnyFamily {
  readonly name: string
  /** The trials that a choice leaves. */
  readonly list: (choice: Choice) => readonly Pick<Trial<never>, 'name' | 'expected'>[]
  /** Runs them on a stack of their own; verdicts in the order of the list. */
  readonly run: (choice: Choice) => Promise<readonly Verdict[]>
}

export function family<World>(rows: Family<World>): AnyFamily {
  const list = ({ short, named = '' }: Choice) =>
    rows.trials.filter(({ name, long }) => !(short && long) && name.includes(named))
  return {
    name: rows.name,
    list,
    run: async (choice) => {
      if (list(choice).length === 0) return []
      const world = await rows.open()
      try {
        return await together(list(choice), rows.atATime, (trial) => verdictOf(trial, world))
      } finally {
        await rows.close(world)
      }
    },
  }
}

/** A trial that takes longer than this hangs, which is what the router must never do. */
const HANG_MS = 120_000

async function verdictOf<World>(trial: Trial<World>, world: World): Promise<Verdict> {
  const { name, expected } = trial
  let timer: NodeJS.Timeout | undefined
  const hang = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`hangs for ${HANG_MS / 1000} s`), HANG_MS)
  })
  const run = trial.run(world).catch((error: unknown) => `failed to run: ${String(error)}`)
  const seen = await Promise.race([run, hang])
  clearTimeout(timer)
  return { trial: name, expected, seen }
}

/** Works through the items, so many at a time, and answers in their order. */
export async function together<Item, Result>(
  items: readonly Item[],
  atATime: number,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = []
  const queue = items.entries()
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: atATime }, worker))
  return results
}
