import { useEffect, useId, useState } from 'preact/hooks'
import * as z from 'zod'
import type { Inputs } from '../verifier/inputs.ts'
import { readPublic } from './api.ts'
import type { Settings } from './chat.ts'
import { TrustFields } from './proof.tsx'

const EFFORTS = ['', 'off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

interface FieldsProps {
  readonly inputs: Inputs
  readonly change: (changes: Partial<Inputs>) => void
}

interface SettingsProps extends FieldsProps {
  readonly settings: Settings
  readonly set: (name: keyof Settings) => (value: string) => void
  readonly models: readonly string[]
  readonly problem: string
}

/** The settings of a chat: the API key, the release root, the model and how it answers. */
export function SettingsForm({ inputs, change, settings, set, models, problem }: SettingsProps) {
  return (
    <form class="settings" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
      <KeyField inputs={inputs} change={change} />
      <TrustFields inputs={inputs} change={change} />
      <Choice label="Model" value={settings.model} choose={set('model')} options={models} />
      <div class="pair">
        <Choice
          label="Reasoning"
          value={settings.reasoning}
          choose={set('reasoning')}
          options={EFFORTS}
        />
        <Choice
          label="Failover to"
          value={settings.failover}
          choose={set('failover')}
          options={['', ...models.filter((one) => one !== settings.model)]}
        />
      </div>
      {problem !== '' && (
        <p class="fault" role="alert">
          {problem}
        </p>
      )}
    </form>
  )
}

const modelsSchema = z.object({ data: z.array(z.looseObject({ id: z.string() })) })

/** The chat models that the router lists. */
export function useModels(): { readonly models: readonly string[]; readonly problem: string } {
  const [known, setKnown] = useState({ models: [] as readonly string[], problem: '' })
  useEffect(() => {
    readPublic('/v1/models?type=chat', modelsSchema).then(
      ({ data }) => setKnown({ models: data.map(({ id }) => id), problem: '' }),
      (error: unknown) =>
        setKnown({ models: [], problem: error instanceof Error ? error.message : 'No models.' }),
    )
  }, [])
  return known
}

function KeyField({ inputs, change }: FieldsProps) {
  return (
    <div class="field">
      <label for="key">API key</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        value={inputs.apiKey}
        aria-describedby="key-hint"
        onInput={({ currentTarget }) => change({ apiKey: currentTarget.value.trim() })}
      />
      <p class="hint" id="key-hint">
        Kept in the memory of this page alone. Answers are billed to it.
      </p>
    </div>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly choose: (value: string) => void
  readonly options: readonly string[]
}

function Choice({ label, value, choose, options }: ChoiceProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option === '' ? 'Default' : option}
          </option>
        ))}
      </select>
    </div>
  )
}
