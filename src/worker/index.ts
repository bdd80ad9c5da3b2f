import { connect } from 'cloudflare:sockets'
import { App } from './app.ts'
import type { Env } from './env.ts'

/**
 * The worker's entry. An isolate has one environment, so its App is opened on the first request and kept,
 * in this closure and nowhere else.
 */
function createWorker(): ExportedHandler<Env> {
  let app: App | undefined
  const surroundings = { now: () => Date.now(), newId: () => crypto.randomUUID(), reach }
  return {
    fetch(request, env, execution) {
      app ??= new App(env, surroundings)
      return app.handle(request, execution)
    },
  }
}

async function reach(address: { hostname: string; port: number }): Promise<void> {
  const socket = connect(address)
  await socket.opened
  await socket.close()
}

export default createWorker()
