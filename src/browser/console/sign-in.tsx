import { useState } from 'preact/hooks'
import { ApiFailure, type Api, type Session } from './api.ts'

interface SignInProps {
  readonly api: Api
  /** Why the user has to sign in. */
  readonly message: string
  readonly signedIn: (session: Session) => void
}

/** Takes an admin token once and exchanges it for a cookie that no script can read. */
export function SignIn({ api, message, signedIn }: SignInProps) {
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async () => {
    setBusy(true)
    try {
      signedIn(await api.signIn(token))
    } catch (error) {
      setProblem(reasonOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <main id="content">
      <form
        class="narrow"
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy) void submit()
        }}
      >
        <h2 tabIndex={-1}>Sign in</h2>
        {message !== '' && (
          <p class="hint" role="status">
            {message}
          </p>
        )}
        <div class="field">
          <label for="token">Admin token</label>
          <input
            id="token"
            type="password"
            autocomplete="off"
            value={token}
            aria-describedby="token-hint token-fault"
            aria-invalid={problem !== ''}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
          <p class="hint" id="token-hint">
            Begins a session of two hours at most, in a cookie that no script can read. The token
            itself is kept nowhere. A token of scope “read” is enough to look.
          </p>
          <p class="fault" id="token-fault" role="alert">
            {problem}
          </p>
        </div>
        <button type="submit" class="go" disabled={busy}>
          {busy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  )
}

function reasonOf(error: unknown): string {
  if (!(error instanceof ApiFailure)) return 'The page has a fault.'
  return error.status === 401 ? 'This is not an admin token of this router.' : error.message
}
