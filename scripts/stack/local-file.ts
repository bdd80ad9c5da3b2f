import type { StateDir } from './state-dir.ts'

/** `local.json`: where a running stack is found, for programs. It is there only while every part answers. */
export interface LocalFile {
  readonly base_url: string
  readonly tls_base_url: string
  readonly api_key: string
  readonly customer_id: string
  readonly admin_token: string
  /** Path of the release root's public JWK. */
  readonly root_key: string
  readonly pids: { readonly worker: number; readonly enclave: number; readonly standin?: number }
}

export const LOCAL_FILE = 'local.json'

export function writeLocalFile(state: StateDir, local: LocalFile): void {
  state.write(LOCAL_FILE, `${JSON.stringify(local, null, 2)}\n`)
}
