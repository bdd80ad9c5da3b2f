import { resolve } from 'node:path'
import { DEFAULT_STATE_DIR } from './settings.ts'

/** The values shown when everything is running. */
export interface ScreenFacts {
  readonly baseUrl: string
  readonly tlsBaseUrl: string
  readonly apiKey: string
  readonly model: string
  readonly stateDir: string
}

/** The welcome text. The curl command and the snippet work as printed. */
export function screen(facts: ScreenFacts): string {
  const { baseUrl, tlsBaseUrl, apiKey, model, stateDir } = facts
  return `
  Confidential Model Router is up (local mode: simulated SNP platforms, stand-in provider)

    address   ${baseUrl}
    TLS       ${tlsBaseUrl}  (its key is named in ${baseUrl}/attestation)
    API key   ${apiKey}
    console   ${baseUrl}/console  (sign in with admin_token of local.json)
    state     ${stateDir}  (local.json, log/)

  Ask it something:

${curlCommand(baseUrl, apiKey, model)}

  Or from a program (npm install openai):

${sdkSnippet(baseUrl, apiKey, model)}

  Verify the enclave, and the receipt of the latest answer (router and provider):

    ${verifyCommand('attestation', stateDir)}
    ${verifyCommand('receipt', stateDir)}

  Keys and credit: ${commandHere(stateDir)}npm run admin -- --help      Stop: Ctrl-C
`
}

/** The command finds the router by its state directory, which is omitted if it is the default one. */
function verifyCommand(what: string, stateDir: string): string {
  return `${commandHere(stateDir)}npm run verify -- ${what} --local`
}

function commandHere(stateDir: string): string {
  return stateDir === resolve(DEFAULT_STATE_DIR) ? '' : `STATE_DIR=${stateDir} `
}

/** A shell command that requests one completion. */
export function curlCommand(baseUrl: string, apiKey: string, model: string): string {
  const body = { model, messages: [{ role: 'user', content: 'Hello!' }] }
  return [
    `curl ${baseUrl}/v1/chat/completions \\`,
    `  -H 'Authorization: Bearer ${apiKey}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n')
}

/** A module that requests one completion with the official client. */
export function sdkSnippet(baseUrl: string, apiKey: string, model: string): string {
  return `import OpenAI from 'openai'
const client = new OpenAI({ baseURL: '${baseUrl}/v1', apiKey: '${apiKey}' })
const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello!' }],
})
console.log(answer.choices[0].message.content, answer.service)`
}
