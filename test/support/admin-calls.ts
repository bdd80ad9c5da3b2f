import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { z } from 'zod'
import { adminSubcommand } from '../../src/cli/admin.ts'
import { listen } from './listen.ts'

/** A call as the router gets it from the admin command. */
export interface AdminCallSeen {
  readonly method: string
  readonly path: string
  /** Names of the parameters of the query. */
  readonly query: readonly string[]
  /** Names of the members of the body. */
  readonly body: readonly string[]
}

/** Every option that is free text, a number or an amount takes this. */
const VALUE = '2'

/** What each of the admin commands asks of a router when it is given every option that it has. */
export async function callsOfAdminCommands(): Promise<readonly AdminCallSeen[]> {
  const calls: AdminCallSeen[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    calls.push(await seen(request))
    response.end('"text"')
  }
  const router = createServer((request, response) => void answer(request, response))
  const directory = mkdtempSync(join(tmpdir(), 'cmr-test-admin-'))
  const tokenFile = join(directory, 'token')
  writeFileSync(tokenFile, 'token\n')
  chmodSync(tokenFile, 0o600)
  const base = `http://127.0.0.1:${await listen(router)}`
  const { command } = adminSubcommand()
  for (const leaf of leaves(command)) {
    const line = ['--base-url', base, '--token-file', tokenFile, ...everything(leaf)]
    await command.parseAsync(line, { from: 'user' })
  }
  router.close()
  rmSync(directory, { recursive: true, force: true })
  return calls
}

async function seen(request: IncomingMessage): Promise<AdminCallSeen> {
  const url = new URL(request.url ?? '', 'http://router')
  const given = await text(request)
  const body = given === '' ? {} : z.record(z.string(), z.unknown()).parse(JSON.parse(given))
  return {
    method: request.method ?? '',
    path: url.pathname,
    query: [...url.searchParams.keys()],
    body: Object.keys(body),
  }
}

type Leaf = readonly [words: readonly string[], command: Command]

/** The commands that do something, each with the words that lead to it. */
function leaves(command: Command, words: readonly string[] = []): readonly Leaf[] {
  if (command.commands.length === 0) return [[words, command]]
  return command.commands.flatMap((part) => leaves(part, [...words, part.name()]))
}

/** A command line that gives a command everything it takes. */
function everything([words, command]: Leaf): readonly string[] {
  const options = command.options.flatMap(({ long, argChoices, required, optional }) => [
    long ?? '',
    ...(required || optional ? [argChoices?.[0] ?? VALUE] : []),
  ])
  return [...words, ...command.registeredArguments.map(() => VALUE), ...options]
}
