import { sweepAll } from '../settle/sweep.ts'
import type { Database, Storage } from '../storage/database.ts'
import { customerIds } from '../storage/directory.ts'
import { gather } from './gather.ts'

/** What maintenance did, in all databases together. */
export interface MaintenanceReport {
  /** Reservations that were given back. */
  readonly released: number
  /** Receipt bodies that were overwritten, their time being over. */
  readonly expired: number
  /** Overwritten bodies that were cleared. */
  readonly cleared: number
}

const PAGE = 500
const AT_A_TIME = 8

/** Sweeps every database until nothing is due at `now` (ms since the epoch). */
export async function maintain(storage: Storage, now: number): Promise<MaintenanceReport> {
  const directory = storage.directory()
  let sum = add({ released: 0, expired: 0, cleared: 0 }, await sweepAll(directory, now))
  if (storage.shared) return sum
  for await (const customers of customerPages(directory)) {
    const databases = customers.map((id) => storage.customer(id))
    const reports = await gather(databases, AT_A_TIME, (db) => sweepAll(db, now))
    sum = reports.reduce(add, sum)
  }
  return sum
}

async function* customerPages(directory: Database): AsyncGenerator<readonly string[]> {
  let after: string | undefined
  do {
    const page = await customerIds(directory, { limit: PAGE, after })
    yield page
    after = page.length < PAGE ? undefined : page.at(-1)
  } while (after !== undefined)
}

function add(left: MaintenanceReport, right: MaintenanceReport): MaintenanceReport {
  return {
    released: left.released + right.released,
    expired: left.expired + right.expired,
    cleared: left.cleared + right.cleared,
  }
}
