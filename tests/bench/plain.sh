#!/usr/bin/env bash
# The peer of the benchmark: k3s's published steps for an air-gapped cluster, as an operator would put them into a script.
# Nothing is checked, nothing is idempotent, and the nodes have to be new.
#   plain.sh PLAN    PLAN is a file of shell variables, which converge.py writes:
#     SERVER, AGENT             names of the nodes, which ssh knows; SERVER_ADDRESS, AGENT_ADDRESS, INTERFACE
#     DATA_DIR, K3S, AIRGAP     k3s's data-dir, its binary and its archive on this machine
#     IMAGES                    lines "name archive"
#     MANIFESTS                 folder with device-plugin.json and serving.json
#     KUBECONFIG                where to write it
#     NAMESPACE, DEPLOYMENTS, SERVICE, PORT, MODEL, PROMPT
# Prints the seconds of each step, then the answer.
set -euo pipefail
# shellcheck source=/dev/null
source "$1"
export KUBECONFIG

on() { local host=$1; shift; ssh "$host" "$@"; }
send() { scp -q "$2" "$1:$3"; }

step() {
  local name=$1 start=$EPOCHREALTIME
  shift
  "$@"
  awk -v name="$name" -v start="$start" -v end="$EPOCHREALTIME" 'BEGIN { printf "step %6.1f %s\n", end - start, name }'
}

# What k3s's install script does with INSTALL_K3S_SKIP_DOWNLOAD=true: a unit and its environment file.
install_k3s() {
  local host=$1 unit=$2 environment=$3
  shift 3
  on "$host" "mkdir -p $DATA_DIR/agent/images /usr/local/bin"
  send "$host" "$K3S" /usr/local/bin/k3s
  send "$host" "$AIRGAP" "$DATA_DIR/agent/images/"
  on "$host" "umask 077; cat > /etc/systemd/system/$unit.service.env" <<< "$environment"
  on "$host" "chmod 755 /usr/local/bin/k3s; cat > /etc/systemd/system/$unit.service; systemctl daemon-reload; systemctl enable -q --now $unit" <<UNIT
[Unit]
Wants=network-online.target
After=network-online.target
[Service]
Type=notify
EnvironmentFile=-/etc/systemd/system/$unit.service.env
KillMode=process
Delegate=yes
LimitNOFILE=1048576
TasksMax=infinity
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStart=/usr/local/bin/k3s $* --data-dir $DATA_DIR
[Install]
WantedBy=multi-user.target
UNIT
}

install_server() {
  install_k3s "$SERVER" k3s "" server --node-ip "$SERVER_ADDRESS" --flannel-iface "$INTERFACE" --node-name "$SERVER" \
    --disable traefik,servicelb,metrics-server --write-kubeconfig-mode 0600
  until on "$SERVER" k3s kubectl --kubeconfig /etc/rancher/k3s/k3s.yaml get node "$SERVER" > /dev/null 2>&1; do sleep 1; done
  (umask 077; on "$SERVER" cat /etc/rancher/k3s/k3s.yaml | sed "s/127\.0\.0\.1/$SERVER_ADDRESS/" > "$KUBECONFIG")
  kubectl wait --timeout 300s --for=condition=Ready "node/$SERVER" > /dev/null
}

join_agent() {
  local token
  token=$(on "$SERVER" cat "$DATA_DIR/server/node-token")
  install_k3s "$AGENT" k3s-agent "K3S_URL=https://$SERVER_ADDRESS:6443
K3S_TOKEN=$token" agent --node-ip "$AGENT_ADDRESS" --flannel-iface "$INTERFACE" --node-name "$AGENT"
  until kubectl get node "$AGENT" > /dev/null 2>&1; do sleep 1; done
  kubectl wait --timeout 300s --for=condition=Ready "node/$AGENT" > /dev/null
}

import_images() {
  local host=$1 name archive repository
  while read -r name archive <&3; do
    # The kubelet looks for repository@digest, without the tag.
    repository=${name%@*} repository=${repository%:*}
    send "$host" "$archive" /tmp/image.tar
    on "$host" "k3s ctr -n k8s.io images import --digests --base-name $repository /tmp/image.tar > /dev/null; rm /tmp/image.tar"
  done 3<<< "$IMAGES"
}

apply() {
  kubectl apply -f "$MANIFESTS/device-plugin.json" -f "$MANIFESTS/serving.json" > /dev/null
}

wait_for_pods() {
  local deployment
  for deployment in $DEPLOYMENTS; do
    kubectl -n "$NAMESPACE" rollout status --timeout 300s "deployment/$deployment" > /dev/null
  done
}

ask() {
  local url body
  url=http://$(kubectl -n "$NAMESPACE" get service "$SERVICE" -o jsonpath='{.spec.clusterIP}'):$PORT/v1/chat/completions
  body="{\"model\": \"$MODEL\", \"messages\": [{\"role\": \"user\", \"content\": \"$PROMPT\"}], \"max_tokens\": 64}"
  # Ready pods are not yet workers that the router knows: ask until it answers.
  for _attempt in $(seq 60); do
    if answer=$(on "$SERVER" "curl -sf --max-time 30 -H 'Content-Type: application/json' -d @- $url" <<< "$body"); then
      return
    fi
    sleep 1
  done
  echo "no answer from $url" >&2
  return 1
}

step "install the server" install_server
step "join the agent" join_agent
step "images to the server" import_images "$SERVER"
step "images to the agent" import_images "$AGENT"
step "apply the manifests" apply
step "wait for the pods" wait_for_pods
step "one completion" ask
printf 'answer %s\n' "$answer"
