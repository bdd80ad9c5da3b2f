import { beforeAll, describe, expect, test } from 'vitest'
import { openCrowdedWorld } from '../faults/crowd.ts'
import {
  askApi,
  billOf,
  comparable,
  digestsOf,
  API_FORMATS,
  type Asker,
} from '../faults/api-formats.ts'
import { JOINED_CASES } from '../faults/provider/joined.ts'
import { together } from '../faults/trial.ts'
import type { WorldOptions, WorldRoute } from '../faults/world.ts'

/**
 * The API formats besides Chat Completions among so many streams that chunks are joined, by the daemon or by the worker: every fault
 * must look as it does where nothing is joined, to the byte.
 */

/** A fault in a format; it has models, and so health, of its own. */
const TRIALS = JOINED_CASES.flatMap((fault, index) =>
  API_FORMATS.map((api) => ({ fault, api, model: `m${index}-${api.slice(4)}` })),
)

/** Silence is over soon; no other clock ends anything. */
const TIMEOUTS = {
  headers_ms: 60_000,
  first_delta_ms: 60_000,
  idle_ms: 5_000,
  stream_headers_after_ms: 60_000,
  stream_open_ms: 120_000,
  stream_ms: 120_000,
}

const routes: readonly WorldRoute[] = TRIALS.flatMap(({ fault, model }) =>
  fault.script === undefined
    ? []
    : [
        { model: `${model}-p`, at: 'alpha' as const, script: fault.script },
        { model: `${model}-d`, at: 'beta' as const, script: fault.script },
      ],
)

async function during<Result>(
  options: WorldOptions,
  work: (asker: Asker) => Promise<Result>,
): Promise<Result> {
  const world = await openCrowdedWorld(routes, { timeouts: TIMEOUTS, ...options })
  try {
    return await work({ world, customer: await world.newCustomer() })
  } finally {
    await world.close()
  }
}

interface Seen {
  readonly answer: string
  readonly bill: string
  readonly digests: readonly unknown[]
}

type Trial = (typeof TRIALS)[number]

/** What came of all trials, whose model has this ending. */
async function seenOf(asker: Asker, at: 'alpha' | 'beta', ending: string) {
  const look = async ({ api, model }: Trial): Promise<Seen> => {
    const name = `${model}-${ending}`
    const answer = await askApi(asker, api, name)
    return {
      answer: comparable(answer),
      bill: await billOf(asker, `${at}/${name}`, 1),
      digests: await digestsOf(asker, answer),
    }
  }
  const seen = await together(TRIALS, 6, look)
  return new Map(TRIALS.map((trial, index) => [trial, seen[index]]))
}

describe('a stream for another format', () => {
  let alone: Map<Trial, Seen | undefined>
  let joined: Readonly<Record<'daemon' | 'worker', Map<Trial, Seen | undefined>>>

  beforeAll(async () => {
    const daemon = await during({ pinned: true }, async (asker) => {
      // The crowd is the daemon's, so the worker joins nothing.
      alone = await seenOf(asker, 'beta', 'd')
      return seenOf(asker, 'alpha', 'p')
    })
    const worker = await during({ pinned: false }, (asker) => seenOf(asker, 'alpha', 'p'))
    joined = { daemon, worker }
  }, 400_000)

  test.each(
    TRIALS.flatMap((trial) =>
      (['daemon', 'worker'] as const).map((by) => ({
        trial,
        by,
        of: `${trial.api}: ${trial.fault.name}`,
      })),
    ),
  )('whose chunks the $by joins is what it is alone: $of', ({ trial, by }) => {
    const seen = joined[by].get(trial)
    const expected = alone.get(trial)
    expect(expected?.answer).toMatch(/^200 /)
    expect(seen?.answer).toBe(expected?.answer)
    expect(seen?.bill).toBe(expected?.bill)
    expect(seen?.bill).not.toContain('rows of')
    expect(seen?.digests[0]).toBe(seen?.digests[1])
    expect(seen?.digests.length).toBe(seen?.bill.endsWith(', a receipt') === true ? 2 : 0)
  })

  test.each(API_FORMATS)('%s: they are faults, of which one is none', (api) => {
    const bills = TRIALS.filter((trial) => trial.api === api).map((trial) =>
      alone.get(trial)?.bill.endsWith(', a receipt'),
    )
    expect(bills.filter((isWhole) => isWhole)).toHaveLength(1)
  })
})
