import assert from "node:assert/strict";
import type { TamqError } from "../../../lib/base/errors.ts";
import {
  filesystemOf,
  isNetwork,
  mountOf,
  parseMountInfo,
  refuseNetwork,
} from "../../../lib/ipc/filesystem.ts";
import { withTempDir } from "../../helpers/temp.ts";

const fixture = (name: string) =>
  Deno.readTextFileSync(new URL(`../../fixtures/mountinfo/${name}.txt`, import.meta.url));
const kind = (path: string, text: string) => mountOf(path, parseMountInfo(text))?.type;

Deno.test("[Q-01] the filesystem under a path is the longest mount above it, the last of several", () => {
  const laptop = fixture("laptop");
  assert.equal(kind("/home/ann/.local/state/tamq", laptop), "ext4");
  assert.equal(kind("/home/ann/far/state", laptop), "fuse.sshfs");
  assert.equal(kind("/home/ann/farther", laptop), "ext4");
  assert.equal(kind("/home/ann/with space/state", laptop), "cifs");
  assert.equal(kind("/mnt/nfs", laptop), "nfs4");
  assert.equal(kind("/mnt/nfs/scratch/tamq", laptop), "tmpfs");
  assert.equal(kind("/mnt/cover/x", laptop), "nfs");
  const share = parseMountInfo(laptop).find((mount) => mount.type === "cifs");
  assert.equal(share?.source, "//server/share name");
  assert.equal(kind("/mnt/c/Users/ann", fixture("wsl")), "9p");
  assert.equal(kind("/shared/tamq", fixture("wsl")), "virtiofs");
  assert.deepEqual(parseMountInfo("\nnonsense\n1 2 3 - \n"), []);
});

Deno.test("[Q-01] network filesystems and unknown FUSE programs are told from local ones", () => {
  for (const type of ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone", "ceph"]) {
    assert.equal(isNetwork(type), true, type);
  }
  for (const type of ["ext4", "btrfs", "xfs", "zfs", "tmpfs", "overlay", "fuse.gocryptfs"]) {
    assert.equal(isNetwork(type), false, type);
  }
});

Deno.test("[Q-01, L-02] a state directory on a network filesystem is refused with a way out, also before it exists", () =>
  withTempDir((dir) => {
    const real = Deno.realPathSync(dir);
    const row = (type: string) =>
      `28 1 259:2 / / rw - ext4 /dev/sda rw\n29 28 0:9 / ${real} rw - ${type} far:/x rw\n`;
    refuseNetwork(`${dir}/not/yet`, row("xfs"));
    assert.throws(() => refuseNetwork(`${dir}/not/yet`, row("nfs4")), (error: TamqError) => {
      assert.equal(error.reason, "state_dir_network");
      assert.match(error.message, /nfs4 at /);
      assert.match(error.hint!, /TAMQ_STATE_DIR.*allow_network_state_dir/);
      return true;
    });
    // A symbolic link leads where it leads.
    Deno.symlinkSync("/", `${dir}/link`);
    refuseNetwork(`${dir}/link`, row("nfs4"));
    assert.ok(filesystemOf(dir)?.type, "the kernel of this machine says something");
  }));
