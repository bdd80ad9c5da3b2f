import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { audit, auditDatabase } from '../support/crash/audit.ts'
import { killAtRandom } from '../support/crash/chaos.ts'
import { startClients } from '../support/crash/clients.ts'
import { createDice } from '../support/crash/dice.ts'
import { repeatAll } from '../support/crash/repeats.ts'
import { startD1World, startStackWorld, type CrashWorld } from '../support/crash/world.ts'
import { newCustomer } from '../support/customer.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'

/** `npm run crash` kills more often. The seed repeats who dies and when, not what that meets. */
const KILLS = Number(process.env['CRASH_KILLS'] ?? 4)
const SEED = Number(process.env['CRASH_SEED'] ?? 9)
/** With two minutes until the claims of the dead have lapsed. */
const MAX_MS = 180_000 + KILLS * 10_000

const CLIENTS = 6
const KEYED_CLIENTS = 2
const OPENING_EUR = '900.00'

let postgres: PostgresServer
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.stop())

const WORLDS: readonly [string, () => Promise<CrashWorld>][] = [
  ['Durable Objects', () => startStackWorld('durable-object')],
  ['the SQLite ledger process', () => startStackWorld('sqlite')],
  ['PostgreSQL', async () => startStackWorld({ databaseUrl: await postgres.createDatabase() })],
  ['D1', startD1World],
]

describe.concurrent('killed at random moments under load, no row, receipt or cent is lost or doubled', () => {
  test.each(WORLDS)('on %s', { timeout: MAX_MS }, async (name, start) => {
    const world = await start()
    try {
      const { router, mortal } = world
      const customer = await newCustomer(router, { balance_eur: OPENING_EUR })
      const clients = startClients(CLIENTS, router, customer, createDice(SEED))
      const repeater = await newCustomer(router, { balance_eur: OPENING_EUR })
      const keyed = startClients(KEYED_CLIENTS, router, repeater, createDice(SEED), randomUUID)
      const deaths = await killAtRandom(mortal, KILLS, createDice(SEED))
      const [sightings, asked] = await Promise.all([clients.stop(), keyed.stop()])
      const ends = Object.entries(Object.groupBy(sightings, ({ end }) => end))
      const counts = ends.map(([end, { length }]) => `${end} ${length}`)
      console.log(`${name}: died ${deaths.join(', ')}; answers ${counts.join(', ')}`)
      const carriedOut = await repeatAll(router, repeater, asked)
      const unanswered = asked.filter(({ end }) => end !== 'complete').length
      console.log(
        `${name}: ${asked.length} with an Idempotency-Key, ${unanswered} of them without an answer at first, ${carriedOut.length} carried out by their repeat`,
      )

      expect(sightings.filter(({ end }) => end === 'complete').length).toBeGreaterThan(CLIENTS)
      await audit({ router, customer, openingEur: OPENING_EUR, sightings })
      const rows = await audit({
        router,
        customer: repeater,
        openingEur: OPENING_EUR,
        sightings: [...asked, ...carriedOut],
      })
      expect(rows, 'each key is billed once').toBe(asked.length)
      await world.stop()
      for (const { id } of [customer, repeater]) {
        await world.afterwards(id, (db) => auditDatabase(db, id))
      }
    } finally {
      await world.stop()
      world.clean()
    }
  })
})
