import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { es256JwkSchema, jwkThumbprint } from '../../protocol/jwk.ts'
import { DropZone } from '../parts/drop-zone.tsx'
import { fromBase64 } from '../../protocol/bytes.ts'
import { kindOf, type UserFile } from '../parts/user-file.ts'
import { textOf, type InputFault, type Inputs } from './inputs.ts'

/** The props of every part of the form. */
export interface FieldProps {
  readonly inputs: Inputs
  readonly change: (changes: Partial<Inputs>) => void
  readonly fault: InputFault | undefined
}

interface TextFieldProps extends FieldProps {
  readonly name: keyof Inputs &
    ('router' | 'rootKey' | 'environment' | 'receipt' | 'receiptId' | 'apiKey' | 'providerPolicy')
  readonly label: string
  readonly hint?: ComponentChildren
  readonly rows?: number
  readonly type?: 'url' | 'text' | 'password'
  readonly placeholder?: string
}

export function TextField(props: TextFieldProps) {
  const { name, label, hint, rows, type = 'text', placeholder, inputs, change, fault } = props
  const id = useId()
  const wrong = fault?.input === name
  const common = {
    id,
    name,
    placeholder,
    value: inputs[name],
    spellcheck: false,
    autocomplete: 'off',
    autocapitalize: 'off' as const,
    'aria-invalid': wrong,
    'aria-describedby': `${id}-hint ${id}-fault`,
    onInput: (event: { currentTarget: { value: string } }) =>
      change({ [name]: event.currentTarget.value }),
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows !== undefined && <textarea rows={rows} {...common} />}
      {rows === undefined && type === 'password' && <input {...common} type="password" />}
      {rows === undefined && type === 'url' && <input {...common} type="url" />}
      {rows === undefined && type === 'text' && <input {...common} type="text" />}
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
      <p class="fault" id={`${id}-fault`} role="alert">
        {wrong ? fault.message : ''}
      </p>
    </div>
  )
}

interface CheckFieldProps extends Omit<FieldProps, 'fault'> {
  readonly name: 'allowSimulated' | 'requireCrl'
  readonly label: string
  readonly hint: string
}

export function CheckField({ name, label, hint, inputs, change }: CheckFieldProps) {
  const id = useId()
  return (
    <div class="field check">
      <input
        id={id}
        type="checkbox"
        checked={inputs[name]}
        aria-describedby={`${id}-hint`}
        onChange={(event) => change({ [name]: event.currentTarget.checked })}
      />
      <label for={id}>{label}</label>
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
    </div>
  )
}

interface FileFieldProps extends FieldProps {
  readonly name: 'crl' | 'logPolicy' | 'keys' | 'bundle' | 'request' | 'response'
  readonly label: string
  readonly hint: string
}

export function FileField({ name, label, hint, inputs, change, fault }: FileFieldProps) {
  const file = inputs[name]
  return (
    <div class="field">
      <DropZone
        label={label}
        hint={hint}
        files={file === undefined ? [] : [file]}
        onFiles={([first]) => first && change({ [name]: first })}
        onRemove={() => change({ [name]: undefined })}
      />
      {fault?.input === name && (
        <p class="fault" role="alert">
          {fault.message}
        </p>
      )}
    </div>
  )
}

/** The release root: apart from AMD's roots, the only thing that is trusted in advance. */
export function RootField(props: FieldProps) {
  const { inputs, change } = props
  const thumbprint = useThumbprint(inputs.rootKey)
  return (
    <div class="root">
      <TextField
        {...props}
        name="rootKey"
        label="Release root (public JWK)"
        rows={4}
        placeholder='{"kty":"EC","crv":"P-256","x":"…","y":"…"}'
        hint={
          thumbprint === undefined ? (
            'From the operator, by another way than from this router. Paste it, or choose the file.'
          ) : (
            <>
              Thumbprint, to compare with the one that you were told: <samp>{thumbprint}</samp>
            </>
          )
        }
      />
      <label class="plain file">
        Choose a file
        <input
          type="file"
          onChange={(event) => {
            const input = event.currentTarget
            const [file] = input.files ?? []
            void file?.text().then((rootKey) => change({ rootKey: rootKey.trim() }))
            input.value = ''
          }}
        />
      </label>
    </div>
  )
}

function useThumbprint(text: string): string | undefined {
  const [thumbprint, setThumbprint] = useState<string>()
  useEffect(() => {
    let current = true
    const show = (value: string | undefined) => current && setThumbprint(value)
    thumbprintOf(text).then(show, () => show(undefined))
    return () => {
      current = false
    }
  }, [text])
  return thumbprint
}

async function thumbprintOf(text: string): Promise<string> {
  return jwkThumbprint(es256JwkSchema.parse(JSON.parse(text)))
}

/** Assigns each dropped file to its input by its content. */
export function sortFiles(inputs: Inputs, files: readonly UserFile[]): Partial<Inputs> {
  let sorted: Inputs = inputs
  for (const file of files) {
    const place = PLACES[kindOf(fromBase64(file.base64))]
    sorted = { ...sorted, ...place(file, sorted) }
  }
  return sorted
}

type Place = (file: UserFile, inputs: Inputs) => Partial<Inputs>

const PLACES: Readonly<Record<ReturnType<typeof kindOf>, Place>> = {
  receipt: (file) => ({ receipt: textOf(file) }),
  root: (file) => ({ rootKey: textOf(file) }),
  policy: (file) => ({ providerPolicy: textOf(file) }),
  keys: (keys) => ({ keys }),
  bundle: (bundle) => ({ bundle }),
  logPolicy: (logPolicy) => ({ logPolicy }),
  crl: (crl) => ({ crl }),
  other: (file, { evidence }) => ({
    evidence: [...evidence.filter(({ name }) => name !== file.name), file],
  }),
}
