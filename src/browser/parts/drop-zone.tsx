import { useId, useState } from 'preact/hooks'
import { readUserFile, type UserFile } from './user-file.ts'

export interface DropZoneProps {
  readonly label: string
  readonly hint: string
  readonly files: readonly UserFile[]
  readonly onFiles: (files: readonly UserFile[]) => void
  readonly onRemove: (file: UserFile) => void
  readonly multiple?: boolean
}

/** An area to drop files on, which is also a button to choose them, usable by keyboard, touch and screen reader. */
export function DropZone({
  label,
  hint,
  files,
  onFiles,
  onRemove,
  multiple = false,
}: DropZoneProps) {
  const id = useId()
  const [over, setOver] = useState(false)
  const [problem, setProblem] = useState('')
  const take = async (chosen: FileList | null | undefined) => {
    try {
      setProblem('')
      onFiles(await Promise.all([...(chosen ?? [])].map(readUserFile)))
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'The file cannot be read.')
    }
  }
  return (
    <div
      class="drop"
      data-over={String(over)}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        event.stopPropagation()
        setOver(false)
        void take(event.dataTransfer?.files)
      }}
    >
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        multiple={multiple}
        aria-describedby={`${id}-hint`}
        onChange={(event) => {
          const input = event.currentTarget
          void take(input.files).then(() => (input.value = ''))
        }}
      />
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
      {problem !== '' && (
        <p class="fault" role="alert">
          {problem}
        </p>
      )}
      <BroughtFiles files={files} onRemove={onRemove} />
    </div>
  )
}

function BroughtFiles({ files, onRemove }: Pick<DropZoneProps, 'files' | 'onRemove'>) {
  if (files.length === 0) return null
  return (
    <ul class="brought">
      {files.map((file) => (
        <li key={file.name}>
          <span>
            {file.name} <small>{file.bytes.toLocaleString('en')} bytes</small>
          </span>
          <button type="button" class="plain" onClick={() => onRemove(file)}>
            Remove <span class="hidden">{file.name}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}
